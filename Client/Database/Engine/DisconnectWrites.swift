import HearthTree

/// The confirmed writes that the server will make when the connection ends. The engine then makes the same writes,
/// so that the program sees them immediately.
struct DisconnectWrites {
    /// No location is an ancestor of another.
    private var writes = PathTrie<Node>()

    var isEmpty: Bool { writes.isEmpty }

    /// Replaces the stored writes at and below a location. If a location above has a write, the data is merged into
    /// that write.
    mutating func put(_ node: Node, at path: TreePath) {
        if let (above, kept) = writes.first(atOrAbove: path), above.count < path.count {
            writes[above] = kept.applying(TreeChange(path: path.relative(to: above), node: node))
            return
        }
        writes.update(at: path) { trie in
            trie = PathTrie()
            trie.value = node
        }
    }

    mutating func cancel(at path: TreePath) { writes.update(at: path) { $0 = PathTrie() } }

    /// Removes and returns all writes.
    mutating func take() -> [TreeChange] {
        var changes: [TreeChange] = []
        writes.forEach { changes.append(TreeChange(path: $0, node: $1)) }
        writes = PathTrie()
        return changes
    }
}
