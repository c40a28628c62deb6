import HearthTree

/// What the server will write when the connection ends, as far as it has confirmed it: the engine then does the same, so that
/// the program sees it at once. Source: rtdb-protocol §12.2, §15.7.
struct DisconnectWrites {
    /// No place is below another.
    private var writes = PathTrie<Node>()

    var isEmpty: Bool { writes.isEmpty }

    /// Replaces what is kept at and below a place; below a place that is kept it is worked into that.
    mutating func put(_ node: Node, at path: TreePath) {
        if let (above, kept) = writes.first(onTheWayTo: path), above.count < path.count {
            writes[above] = kept.applying(TreeChange(path: path.relative(to: above), node: node))
            return
        }
        writes.update(at: path) { trie in
            trie = PathTrie()
            trie.value = node
        }
    }

    mutating func cancel(at path: TreePath) { writes.update(at: path) { $0 = PathTrie() } }

    /// All of them, and none are left.
    mutating func take() -> [TreeChange] {
        var changes: [TreeChange] = []
        writes.forEach { changes.append(TreeChange(path: $0, node: $1)) }
        writes = PathTrie()
        return changes
    }
}
