import HearthTree

/// The known server data of locations with a listen for all data.
///
/// A location is *complete* when all data below it is known. All data in the tree belongs to complete locations; a
/// location that is not complete may have complete children. The windows of filtered queries belong to their views:
/// they contain no information about other children.
struct ServerCache {
    private var tree = Node.empty
    /// The highest complete locations; none is an ancestor of another.
    private var complete = PathTrie<Bool>()

    func isComplete(at path: TreePath) -> Bool { complete.first(atOrAbove: path) != nil }

    /// The known data, complete or not.
    func node(at path: TreePath) -> Node { tree.node(at: path) }

    /// The data when all of it is known.
    func completeNode(at path: TreePath) -> Node? { isComplete(at: path) ? tree.node(at: path) : nil }

    /// The completely known children of an incomplete location, including absent ones.
    func completeChildren(at path: TreePath) -> [TreeKey] {
        guard let trie = complete.subtrie(at: path) else { return [] }
        return trie.children.compactMap { $0.value.value == nil ? nil : $0.key }
    }

    /// Applies the server's changes together. Priorities of incomplete locations are ignored.
    mutating func apply(_ changes: [TreeChange]) {
        let known = changes.filter { !$0.isPriority || isComplete(at: $0.location) }
        tree = tree.applying(known)
        for change in known where !change.isPriority { markComplete(at: change.path) }
    }

    mutating func apply(_ node: Node, at path: TreePath) { apply([TreeChange(path: path, node: node)]) }

    /// Marks a location as complete.
    mutating func markComplete(at path: TreePath) {
        if isComplete(at: path) { return }
        complete.update(at: path) { trie in
            trie = PathTrie()
            trie.value = true
        }
    }

    /// Drops the data at and below a location, except at and below `kept` locations within.
    mutating func forget(at path: TreePath, keeping kept: [TreePath]) {
        if let parent = path.parent, isComplete(at: parent) { return }
        let isWhole = isComplete(at: path)
        let rescued = kept.map { location in
            (
                location: location, node: tree.node(at: location),
                complete: isWhole ? nil : complete.subtrie(at: location)
            )
        }
        tree = tree.setting(path, to: .empty)
        complete.update(at: path) { $0 = PathTrie() }
        for (location, node, marks) in rescued {
            tree = tree.setting(location, to: node)
            if isWhole {
                markComplete(at: location)
            } else if let marks {
                complete.update(at: location) { $0 = marks }
            }
        }
    }
}
