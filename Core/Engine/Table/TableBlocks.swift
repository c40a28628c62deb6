import CLinux
import Glibc
import Synchronization

/// The memory of a table: frees what no version shows that anyone holds.
///
/// What a commit replaced is still shown by the version before it, and kept for that one. When the last holder of a
/// version is gone, what is kept for it is freed, or kept for the nearest earlier version that is still held, if that
/// one shows it, too: if it was made no later. So a snapshot that is held for long keeps what it shows and nothing else.
///
/// `@unchecked Sendable`: everything but `endedVersions` belongs to whoever holds the writer's lock.
final class TableBlocks: @unchecked Sendable {
    private struct Kept {
        let version: UInt64
        var blocks: ContiguousArray<TableBlock> = []
        /// Roots of trees, with all that is below them.
        var trees: [RetiredTree] = []
        /// What was kept for later versions that have ended; this one shows some of it.
        var unsorted: ContiguousArray<TableBlock> = []
        var unsortedTrees: [RetiredTree] = []
        /// Of all these.
        var bytes = 0

        var isSorted: Bool { unsorted.isEmpty && unsortedTrees.isEmpty }
    }

    /// One for each version that may be held, in their order. The last is the present one.
    private var kept: [Kept] = []
    /// What nobody sees. Freed in pieces, so that no commit has to free what a long snapshot has kept.
    private var unused: ContiguousArray<TableBlock> = []
    /// Nodes of which nobody sees anything, nor of what is below them.
    private var unusedTrees: [TableBlock] = []
    /// Blocks that are allocated: what versions show that anyone holds, and what is about to be freed.
    private(set) var count = 0
    /// About how many bytes are kept for versions before the present one.
    private(set) var keptBytes = 0
    /// Those of the present version.
    private var roots: ContiguousArray<TableBlock?> = []
    private let endedVersions = Mutex<[UInt64]>([])

    /// Blocks that a commit frees, unless twice as many as it changes are more.
    private static let freedMin = 64
    private static let partBlocksMax = 10_000
    private static let keptCapacity = 1 << 12

    deinit {
        // Nobody holds a version, or else it would hold this.
        for root in roots { TableTree(root).forEachBlock { free($0) } }
        for entry in kept {
            for block in entry.blocks { free(block) }
            unusedTrees.append(contentsOf: entry.trees.map(\.root))
        }
        for entry in kept {
            for block in entry.unsorted { free(block) }
            unusedTrees.append(contentsOf: entry.unsortedTrees.map(\.root))
        }
        for root in unusedTrees { TableTree(root).forEachBlock { free($0) } }
        for block in unused { free(block) }
    }

    /// Called by a version that nobody holds any more, on any thread.
    func ended(_ version: UInt64) { endedVersions.withLock { $0.append(version) } }

    /// A version is about to become the present one.
    /// - Parameters:
    ///   - retired: what the version before had and this one hasn't.
    ///   - trees: roots of whole trees of which that holds.
    ///   - madeCount: how many blocks the transaction has made.
    func published(
        _ version: UInt64, _ roots: ContiguousArray<TableBlock?>, retired: ContiguousArray<TableBlock>,
        trees: [RetiredTree], madeCount: Int
    ) {
        count += madeCount
        var bytes = 0
        for block in retired {
            // Made and replaced by the same transaction: never shown.
            if block.madeVersion == version || kept.isEmpty {
                unused.append(block)
            } else {
                kept[kept.count - 1].blocks.append(block)
                bytes += Self.size(block)
            }
        }
        if !kept.isEmpty {
            kept[kept.count - 1].trees += trees
            count(trees.reduce(bytes) { $0 + $1.bytes }, keptFor: kept.count - 1)
        }
        kept.append(Kept(version: version))
        self.roots = roots
    }

    private static func size(_ block: TableBlock) -> Int { linux_malloc_size(block) }

    private func count(_ bytes: Int, keptFor index: Int) {
        kept[index].bytes += bytes
        keptBytes += bytes
    }

    /// Frees some of what nobody sees.
    /// - Parameter changed: how many blocks the commit replaced and made.
    func freeSome(changed: Int) {
        settle()
        let max = max(Self.freedMin, 2 * changed)
        sort(max: max)
        freeUnused(max: max)
    }

    /// Frees a part of what nobody sees, in a millisecond or two.
    /// - Returns: whether there is more.
    func freePart() -> Bool {
        settle()
        let isSorted = sort(max: Self.partBlocksMax)
        freeUnused(max: Self.partBlocksMax)
        return !isSorted || !unused.isEmpty || !unusedTrees.isEmpty
    }

    private func freeUnused(max: Int) {
        while unused.count < max, let root = unusedTrees.popLast() {
            let node = TableNode(root)
            for index in 0..<node.count { unused.append(node.keys[index]) }
            if !node.isLeaf { for index in 0...node.count { unusedTrees.append(node.children[index]) } }
            unused.append(root)
        }
        let freed = min(max, unused.count)
        for block in unused[(unused.count - freed)...] { free(block) }
        unused.removeLast(freed)
        count -= freed
        if unused.isEmpty, freed > Self.keptCapacity { unused = [] }
    }

    /// Passes on what was kept for versions that have ended; `sort` looks at it.
    func settle() {
        let ended = endedVersions.withLock { ended -> [UInt64] in
            defer { ended.removeAll(keepingCapacity: true) }
            return ended
        }
        for version in ended { settle(version) }
    }

    private func settle(_ version: UInt64) {
        guard let index = index(of: version) else { return }
        let ended = kept.remove(at: index)
        guard index > 0 else {
            keptBytes -= ended.bytes
            for blocks in [ended.blocks, ended.unsorted] { Self.append(blocks, to: &unused) }
            return unusedTrees.append(contentsOf: (ended.trees + ended.unsortedTrees).map(\.root))
        }
        kept[index - 1].bytes += ended.bytes
        for blocks in [ended.blocks, ended.unsorted] { Self.append(blocks, to: &kept[index - 1].unsorted) }
        kept[index - 1].unsortedTrees += ended.trees + ended.unsortedTrees
    }

    private static func append(_ blocks: ContiguousArray<TableBlock>, to other: inout ContiguousArray<TableBlock>) {
        if other.isEmpty { other = blocks } else { other.append(contentsOf: blocks) }
    }

    /// Looks at some blocks that were kept for versions that have ended: keeps those that the nearest earlier version
    /// shows.
    /// - Returns: whether nothing is left.
    @discardableResult
    private func sort(max: Int) -> Bool {
        var rest = max
        for index in kept.indices where !kept[index].isSorted {
            var bytes = 0
            defer { count(bytes, keptFor: index) }
            while rest > 0, let block = kept[index].unsorted.popLast() {
                rest -= 1
                if block.madeVersion <= kept[index].version {
                    kept[index].blocks.append(block)
                } else {
                    unused.append(block)
                    bytes -= Self.size(block)
                }
            }
            // Nothing below a node is newer than the node: what a version shows of a tree is found without a walk over
            // all of it.
            while rest > 0, let tree = kept[index].unsortedTrees.popLast() {
                rest -= 1
                if tree.root.madeVersion <= kept[index].version {
                    kept[index].trees.append(tree)
                    continue
                }
                bytes -= tree.bytes
                let node = TableNode(tree.root)
                for key in 0..<node.count {
                    kept[index].unsorted.append(node.keys[key])
                    bytes += Self.size(node.keys[key])
                }
                if !node.isLeaf {
                    for position in 0...node.count {
                        let child = node.child(position)
                        // About as many as its entries are of all.
                        let part = tree.bytes / Swift.max(1, node.entryCount) * child.entryCount
                        kept[index].unsortedTrees.append(RetiredTree(root: child.block, bytes: part))
                        bytes += part
                    }
                }
                unused.append(tree.root)
            }
            if !kept[index].isSorted { return false }
        }
        return true
    }

    private func index(of version: UInt64) -> Int? {
        var low = 0
        var high = kept.count
        while low < high {
            let middle = (low + high) / 2
            if kept[middle].version < version { low = middle + 1 } else { high = middle }
        }
        return low < kept.count && kept[low].version == version ? low : nil
    }
}

/// A tree that a version doesn't have any more.
struct RetiredTree {
    let root: TableBlock
    /// About how many it has; 0 when that isn't known.
    let bytes: Int
}
