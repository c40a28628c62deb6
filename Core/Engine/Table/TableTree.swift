/// Reads of one version of a tree. Whoever reads keeps the version alive: see `TableVersion`.
struct TableTree {
    /// nil when the tree is empty.
    let root: TableBlock?

    @inline(__always) init(_ root: TableBlock?) { self.root = root }

    @inline(__always)
    func find(_ key: RawKey) -> TableEntry? {
        guard let root else { return nil }
        var node = TableNode(root)
        while !node.isLeaf { node = node.child(node.childIndex(key)) }
        let (position, isFound) = node.search(key)
        return isFound ? TableEntry(node.keys[position]) : nil
    }

    var count: Int { root.map { TableNode($0).entryCount } ?? 0 }

    /// How many entries are before a key.
    func rank(_ key: RawKey) -> Int {
        guard let root else { return 0 }
        var node = TableNode(root)
        var rank = 0
        while !node.isLeaf {
            let index = node.childIndex(key)
            for before in 0..<index { rank += node.child(before).entryCount }
            node = node.child(index)
        }
        return rank + node.search(key).position
    }

    /// Calls `body` with each block of the tree, a node's after those below it.
    func forEachBlock(_ body: (TableBlock) -> Void) {
        if let root { Self.forEachBlock(TableNode(root), body) }
    }

    private static func forEachBlock(_ node: TableNode, _ body: (TableBlock) -> Void) {
        for index in 0..<node.count { body(node.keys[index]) }
        if !node.isLeaf { for index in 0...node.count { forEachBlock(node.child(index), body) } }
        body(node.block)
    }
}

extension TableTree {
    /// How many entries are in a range.
    func count(_ range: KeyRange) -> Int {
        if root == nil { return 0 }
        let end = range.upper.map { $0.withKey { rank($0) } } ?? count
        return max(0, end - range.lower.withKey { rank($0) })
    }

    func hasEntries(_ range: KeyRange) -> Bool {
        if root == nil { return false }
        var walk = TableWalk(root)
        range.lower.withKey { walk.moveUp(to: $0) }
        guard let entry = walk.entry else { return false }
        return range.upper.map { $0.withKey { entry.key.compare($0) < 0 } } ?? true
    }
}
