import Glibc

/// The changes of a transaction to the trees of a table.
///
/// A node of an earlier version is copied before it changes, one of this version is changed in place. What the
/// transaction made is freed when it fails; what it replaced, when no snapshot shows it any more (`TableBlocks`).
final class TableEditor {
    /// The version that the transaction is going to publish.
    private(set) var version: UInt64 = 1
    /// What the transaction has made.
    private var made: ContiguousArray<TableBlock> = []
    var madeCount: Int { made.count }
    /// What the new version doesn't have any more.
    private(set) var retired: ContiguousArray<TableBlock> = []
    /// Roots of whole trees that it doesn't have any more.
    private(set) var retiredTrees: [RetiredTree] = []
    /// What entries have been put, less those that were replaced or removed, in bytes with what each takes beside its
    /// own; only ever counted on. Whole trees that were removed are not in it.
    private(set) var entryBytes = 0
    /// An entry's pointer and number in a node, and the allocator's own bytes.
    static let entryOverheadBytes = 40
    /// The other half of the node that was split last, and the separator between the two.
    private var split: (right: TableNode, separator: TableEntry)?

    /// Begins a transaction.
    func begin(version: UInt64) {
        precondition(made.isEmpty && retired.isEmpty, "one transaction at a time")
        self.version = version
    }

    func committed() {
        made.removeAll(keepingCapacity: made.count <= Self.keptCapacity)
        retired.removeAll(keepingCapacity: retired.count <= Self.keptCapacity)
        retiredTrees = []
    }

    func rollBack() {
        for block in made { free(block) }
        committed()
    }

    private static let keptCapacity = 1 << 16

    // MARK: Blocks

    @inline(__always)
    private func makeBlock(_ sizeBytes: Int) -> TableBlock {
        guard let block = malloc(sizeBytes) else { fatalError("out of memory") }
        block.madeVersion = version
        made.append(block)
        return block
    }

    private func makeNode(isLeaf: Bool) -> TableNode {
        let node = TableNode(makeBlock(isLeaf ? TableNode.leafBytes : TableNode.innerBytes))
        node.clear(isLeaf: isLeaf)
        return node
    }

    private func makeEntry(_ key: RawKey, _ value: UnsafeRawBufferPointer) -> TableEntry {
        let entry = TableEntry(makeBlock(TableEntry.sizeBytes(key.count, value.count)))
        entry.fill(key, value)
        return entry
    }

    /// The node itself if it belongs to this transaction, else a copy.
    @inline(__always)
    private func writable(_ node: TableNode) -> TableNode {
        if node.block.madeVersion == version { return node }
        let copy = TableNode(makeBlock(node.sizeBytes))
        copy.copyContents(of: node)
        retired.append(node.block)
        return copy
    }

    // MARK: Put

    func put(_ root: inout TableBlock?, _ key: RawKey, _ value: UnsafeRawBufferPointer) {
        put(&root, key, makeEntry(key, value))
    }

    /// Puts a tombstone.
    func bury(_ root: inout TableBlock?, _ key: RawKey) {
        let entry = TableEntry(makeBlock(TableEntry.sizeBytes(key.count, 0)))
        entry.fillTombstone(key)
        put(&root, key, entry)
    }

    private func put(_ root: inout TableBlock?, _ key: RawKey, _ entry: TableEntry) {
        entryBytes += entry.sizeBytes + Self.entryOverheadBytes
        guard let old = root else {
            let leaf = makeNode(isLeaf: true)
            leaf.insertKey(entry, at: 0)
            root = leaf.block
            return
        }
        var isNew = false
        let node = insert(TableNode(old), key, entry, &isNew)
        root = node.block
        guard let (right, separator) = split else { return }
        split = nil
        let top = makeNode(isLeaf: false)
        top.children[0] = node.block
        top.children[1] = right.block
        top.insertKey(separator, at: 0)
        top.entryCount = node.entryCount + right.entryCount
        root = top.block
    }

    private func insert(
        _ old: TableNode, _ key: RawKey, _ entry: TableEntry, _ isNew: inout Bool
    ) -> TableNode {
        if old.isLeaf { return insertIntoLeaf(old, key, entry, &isNew) }
        let index = old.childIndex(key)
        let child = insert(old.child(index), key, entry, &isNew)
        let node = writable(old)
        node.children[index] = child.block
        if isNew { node.entryCount += 1 }
        guard let (right, separator) = split else { return node }
        split = nil
        if node.count < TableNode.capacity {
            node.insertChild(right, at: index + 1)
            node.insertKey(separator, at: index)
        } else {
            splitInner(node, index, separator, right)
        }
        return node
    }

    private func insertIntoLeaf(
        _ old: TableNode, _ key: RawKey, _ entry: TableEntry, _ isNew: inout Bool
    ) -> TableNode {
        let (index, isFound) = old.search(key)
        let node = writable(old)
        if isFound {
            entryBytes -= TableEntry(node.keys[index]).sizeBytes + Self.entryOverheadBytes
            retired.append(node.keys[index])
            node.keys[index] = entry.block
            return node
        }
        isNew = true
        if node.count < TableNode.capacity {
            node.insertKey(entry, at: index)
        } else {
            splitLeaf(node, index, entry)
        }
        return node
    }

    /// Splits a full leaf, into which an entry is to be inserted.
    private func splitLeaf(_ node: TableNode, _ index: Int, _ entry: TableEntry) {
        let right = makeNode(isLeaf: true)
        if index == TableNode.capacity {
            // A tree that grows at its end, like the feed, has full nodes.
            right.insertKey(entry, at: 0)
        } else {
            let middle = TableNode.capacity / 2
            memcpy(right.keys, node.keys + middle, 8 * (TableNode.capacity - middle))
            right.count = TableNode.capacity - middle
            node.count = middle
            right.renumber()
            node.renumber()
            if index <= middle { node.insertKey(entry, at: index) } else { right.insertKey(entry, at: index - middle) }
        }
        let last = node.key(node.count - 1)
        let first = right.key(0)
        // The shortest key that is behind the one and not behind the other.
        let separator = RawKey(first.base, last.sharedCount(first, max: first.count) + 1)
        split = (right, makeEntry(separator, UnsafeRawBufferPointer(start: nil, count: 0)))
    }

    /// Splits a full inner node, whose child at `index` was split.
    private func splitInner(_ node: TableNode, _ index: Int, _ separator: TableEntry, _ child: TableNode) {
        let count = TableNode.capacity
        // The separator at `middle` moves up.
        let middle = index == count ? count - 1 : count / 2
        let right = makeNode(isLeaf: false)
        let up = TableEntry(node.keys[middle])
        let moved = count - middle - 1
        memcpy(right.keys, node.keys + middle + 1, 8 * moved)
        memcpy(right.children, node.children + middle + 1, 8 * (moved + 1))
        right.count = moved
        node.count = middle
        right.renumber()
        node.renumber()
        if index <= middle {
            node.insertChild(child, at: index + 1)
            node.insertKey(separator, at: index)
        } else {
            right.insertChild(child, at: index - middle)
            right.insertKey(separator, at: index - middle - 1)
        }
        var below = 0
        for position in 0...right.count { below += right.child(position).entryCount }
        right.entryCount = below
        node.entryCount -= below
        split = (right, up)
    }

    // MARK: Remove

    /// - Returns: false when there was nothing to remove.
    func remove(_ root: inout TableBlock?, _ key: RawKey) -> Bool {
        guard let old = root, TableTree(old).find(key) != nil else { return false }
        var node = remove(TableNode(old), key)
        while !node.isLeaf, node.count == 0 {
            retired.append(node.block)
            node = node.child(0)
        }
        if node.count == 0 {
            retired.append(node.block)
            root = nil
        } else {
            root = node.block
        }
        return true
    }

    /// Removes a key that is there.
    private func remove(_ old: TableNode, _ key: RawKey) -> TableNode {
        let node = writable(old)
        if node.isLeaf {
            let (index, _) = node.search(key)
            entryBytes -= TableEntry(node.keys[index]).sizeBytes + Self.entryOverheadBytes
            retired.append(node.keys[index])
            node.removeKey(at: index)
            return node
        }
        let index = node.childIndex(key)
        let child = remove(node.child(index), key)
        node.children[index] = child.block
        node.entryCount -= 1
        // A node's only child has nothing to be merged with.
        if child.count >= TableNode.capacity / 4 || node.count == 0 { return node }
        if child.entryCount == 0 {
            drop(child, at: index, of: node)
        } else {
            mergeIfSmall(node, index < node.count ? index : index - 1)
        }
        return node
    }

    /// Drops a child without entries.
    private func drop(_ child: TableNode, at index: Int, of node: TableNode) {
        var empty = child
        retired.append(empty.block)
        while !empty.isLeaf {
            empty = empty.child(0)
            retired.append(empty.block)
        }
        let separator = max(0, index - 1)
        retired.append(node.keys[separator])
        node.removeChild(at: index)
        node.removeKey(at: separator)
    }

    /// Merges a child with the one behind it when there is capacity for both and more.
    private func mergeIfSmall(_ node: TableNode, _ index: Int) {
        let right = node.child(index + 1)
        if node.child(index).count + right.count + 1 > TableNode.capacity * 3 / 4 { return }
        let left = writable(node.child(index))
        let below = left.entryCount + right.entryCount
        let separator = node.keys[index]
        var count = left.count
        if left.isLeaf {
            retired.append(separator)
        } else {
            left.keys[count] = separator
            count += 1
            memcpy(left.children + count, right.children, 8 * (right.count + 1))
        }
        memcpy(left.keys + count, right.keys, 8 * right.count)
        left.count = count + right.count
        if !left.isLeaf { left.entryCount = below }
        left.renumber()
        retired.append(right.block)
        node.children[index] = left.block
        node.removeChild(at: index + 1)
        node.removeKey(at: index)
    }

    /// Takes no longer for a large tree than for a small one.
    /// - Parameter bytes: of the tree, as far as they are known.
    func removeAll(_ root: inout TableBlock?, bytes: Int = 0) {
        if let root { retiredTrees.append(RetiredTree(root: root, bytes: bytes)) }
        root = nil
    }
}
