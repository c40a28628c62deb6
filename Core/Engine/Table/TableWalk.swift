/// A position in one version of a tree.
struct TableWalk {
    private let root: TableBlock?
    /// At the present position; nil before the first move and at the end.
    private(set) var entry: TableEntry?
    private var leaf: TableNode?
    private var position = 0
    /// The separators before and behind the leaf.
    private var lowFence: TableEntry?
    private var highFence: TableEntry?

    init(_ root: TableBlock?) { self.root = root }

    /// Whether the tree has no entries.
    var isEmpty: Bool { root == nil }

    /// Moves to the first entry at or behind a key.
    mutating func moveUp(to key: RawKey) {
        // Most moves of a walk are short.
        if let leaf, entry != nil, leaf.key(leaf.count - 1).compare(key) >= 0, leaf.key(0).compare(key) <= 0 {
            position = leaf.search(key).position
            entry = TableEntry(leaf.keys[position])
            return
        }
        descend(key, isBelow: false)
        position = leaf?.search(key).position ?? 0
        settleUp()
    }

    /// Moves to the last entry before a key, or of all.
    mutating func moveDown(below key: RawKey?) {
        descend(key, isBelow: true)
        position = leaf.map { leaf in (key.map { leaf.search($0).position } ?? leaf.count) - 1 } ?? 0
        settleDown()
    }

    /// Moves to the last entry at a key or before it.
    mutating func moveDown(to key: RawKey) {
        descend(key, isBelow: false)
        guard let leaf else { return }
        let (found, isFound) = leaf.search(key)
        position = isFound ? found : found - 1
        settleDown()
    }

    mutating func next() {
        position += 1
        settleUp()
    }

    mutating func previous() {
        position -= 1
        settleDown()
    }

    private mutating func descend(_ key: RawKey?, isBelow: Bool) {
        lowFence = nil
        highFence = nil
        leaf = nil
        guard let root else { return }
        var node = TableNode(root)
        while !node.isLeaf {
            let index = key.map { node.childIndex($0, isBelow: isBelow) } ?? node.count
            if index > 0 { lowFence = TableEntry(node.keys[index - 1]) }
            if index < node.count { highFence = TableEntry(node.keys[index]) }
            node = node.child(index)
        }
        leaf = node
    }

    /// Goes on in the next leaf when the position is behind this one.
    private mutating func settleUp() {
        entry = nil
        guard let present = leaf else { return }
        if position < present.count { return entry = TableEntry(present.keys[position]) }
        guard let fence = highFence else { return }
        descend(fence.key, isBelow: false)
        position = 0
        entry = leaf.map { TableEntry($0.keys[0]) }
    }

    private mutating func settleDown() {
        entry = nil
        guard let present = leaf else { return }
        if position >= 0 { return entry = TableEntry(present.keys[position]) }
        guard let fence = lowFence else { return }
        descend(fence.key, isBelow: true)
        guard let next = leaf else { return }
        position = next.count - 1
        entry = TableEntry(next.keys[position])
    }
}
