import HearthModel

/// A walk over one state of a tree; it retains the tree's root, so the nodes of its path do not change.
final class MemoryStoreCursor: KeyCursor {
    private typealias Node = MemoryStoreTree.Node

    private let tree: MemoryStoreTree
    private let range: KeyRange
    private let reverse: Bool
    private let values: Bool
    private let dropping: Int
    private let life: MemoryStoreLife

    /// The inner nodes down to the leaf, each with the index of the child that was taken.
    private var path: [(node: Node, index: Int)] = []
    private var leaf = Node()
    /// Positions of the leaf that are in the range and still ahead.
    private var rest = 0..<0
    private var position = 0
    private var phase = Phase.unstarted
    /// Where a walk begins or restarts, when not at the range's edge.
    private var start: [UInt8]?

    private enum Phase {
        /// The next step descends from the root.
        case unstarted
        case walking
        case ended
    }

    init(
        _ tree: MemoryStoreTree, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int, life: MemoryStoreLife
    ) {
        self.dropping = dropping
        self.tree = tree
        self.range = range
        self.reverse = reverse
        self.values = values
        self.life = life
    }

    var key: [UInt8] { dropping == 0 ? leaf.keys[position] : Array(leaf.keys[position].dropFirst(dropping)) }
    var value: [UInt8] { values ? leaf.values[position] : [] }

    func next() throws(Status) -> Bool {
        try life.check()
        if phase == .unstarted {
            descend(to: start)
            phase = .walking
        }
        while rest.isEmpty {
            if phase == .ended || !moveToNextLeaf() {
                close()
                return false
            }
        }
        if reverse {
            rest = rest.lowerBound..<(rest.upperBound - 1)
            position = rest.upperBound
        } else {
            position = rest.lowerBound
            rest = (rest.lowerBound + 1)..<rest.upperBound
        }
        return true
    }

    func seek(_ target: [UInt8]) throws(Status) {
        switch phase {
        case .ended:
            return
        case .unstarted:
            if let start, !isBeyond(target, start) { return }
            start = target
        case .walking:
            // Most seeks of a merge join are short: the present leaf is checked first.
            if rest.isEmpty {
                if !isBeyond(target, position) { return }
            } else if !isBeyond(target, reverse ? rest.lowerBound : rest.upperBound - 1) {
                return skip(to: target)
            }
            start = target
            phase = .unstarted
        }
    }

    func close() {
        phase = .ended
        rest = 0..<0
        path = []
    }

    /// Whether `key` is after `other` in the walk's direction.
    private func isBeyond(_ key: [UInt8], _ other: [UInt8]) -> Bool {
        let order = UTF8Order.compare(key, other)
        return reverse ? order < 0 : order > 0
    }

    /// Whether `key` is after the leaf's key at a position.
    private func isBeyond(_ key: [UInt8], _ position: Int) -> Bool {
        let order = leaf.keys.compare(position, key)
        return reverse ? order > 0 : order < 0
    }

    /// Skips entries before `target` in the leaf; never moves back.
    private func skip(to target: [UInt8]) {
        var (position, isFound) = leaf.keys.search(target)
        if reverse {
            if isFound { position += 1 }
            rest = rest.lowerBound..<max(rest.lowerBound, min(rest.upperBound, position))
        } else {
            rest = min(rest.upperBound, max(rest.lowerBound, position))..<rest.upperBound
        }
    }

    /// Descends from the root to the leaf of `target`, or of the range's edge when that's nearer or there is no target.
    private func descend(to target: [UInt8]?) {
        var edge: [UInt8]? = reverse ? range.upper : range.lower
        if let target {
            if let limit = edge { edge = isBeyond(target, limit) ? target : limit } else { edge = target }
        }
        path.removeAll(keepingCapacity: true)
        var node = tree.root
        while !node.isLeaf {
            let index = edge.map { node.child($0) } ?? node.children.count - 1
            path.append((node, index))
            node = node.children[index]
        }
        enter(node)
        if let target { skip(to: target) }
    }

    private func enter(_ node: Node) {
        leaf = node
        let low = leaf.keys.search(range.lower).position
        let high = range.upper.map { leaf.keys.search($0).position } ?? leaf.keys.count
        rest = low..<max(low, high)
    }

    /// False at the end of the tree or of the range.
    private func moveToNextLeaf() -> Bool {
        if isPastRange { return false }
        while let (node, index) = path.popLast() {
            let next = reverse ? index - 1 : index + 1
            guard node.children.indices.contains(next) else { continue }
            path.append((node, next))
            var node = node.children[next]
            while !node.isLeaf {
                let index = reverse ? node.children.count - 1 : 0
                path.append((node, index))
                node = node.children[index]
            }
            enter(node)
            return true
        }
        return false
    }

    /// Whether the range ends within the leaf.
    private var isPastRange: Bool {
        if leaf.keys.isEmpty { return false }
        if reverse { return leaf.keys.compare(0, range.lower) < 0 }
        return range.upper.map { leaf.keys.compare(leaf.keys.count - 1, $0) >= 0 } ?? false
    }
}
