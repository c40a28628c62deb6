import HearthTree

/// The server's data of places that are listened to as a whole, as far as it has come.
///
/// A place is *complete* when all below it is known. Whatever is in the tree belongs to a complete place; a place that isn't
/// complete may have children that are. The windows of filtered queries are their views' own: they say nothing about the
/// other children.
struct ServerCache {
    private var tree = Node.empty
    /// The highest complete places; none is below another.
    private var complete = PathTrie<Bool>()

    func isComplete(at path: TreePath) -> Bool { complete.first(onTheWayTo: path) != nil }

    /// What is known there, complete or not.
    func node(at path: TreePath) -> Node { tree.node(at: path) }

    /// The data when all of it is known.
    func completeNode(at path: TreePath) -> Node? { isComplete(at: path) ? tree.node(at: path) : nil }

    /// The children of an incomplete place that are known completely, absent ones included.
    func completeChildren(at path: TreePath) -> [TreeKey] {
        guard let trie = complete.subtrie(at: path) else { return [] }
        return trie.children.compactMap { $0.value.value == nil ? nil : $0.key }
    }

    /// Takes over what the server says, all at once. Priorities of incomplete places are ignored.
    mutating func apply(_ changes: [TreeChange]) {
        let known = changes.filter { !$0.isPriority || isComplete(at: $0.place) }
        tree = tree.applying(known)
        for change in known where !change.isPriority { markComplete(at: change.path) }
    }

    mutating func apply(_ node: Node, at path: TreePath) { apply([TreeChange(path: path, node: node)]) }

    /// What is known of a place is all that there is.
    mutating func markComplete(at path: TreePath) {
        if isComplete(at: path) { return }
        complete.update(at: path) { trie in
            trie = PathTrie()
            trie.value = true
        }
    }

    /// Drops what is at and below a place, except at and below `kept` places within.
    mutating func forget(at path: TreePath, keeping kept: [TreePath]) {
        if let parent = path.parent, isComplete(at: parent) { return }
        let isWhole = isComplete(at: path)
        let rescued = kept.map { place in
            (place: place, node: tree.node(at: place), complete: isWhole ? nil : complete.subtrie(at: place))
        }
        tree = tree.setting(path, to: .empty)
        complete.update(at: path) { $0 = PathTrie() }
        for (place, node, marks) in rescued {
            tree = tree.setting(place, to: node)
            if isWhole {
                markComplete(at: place)
            } else if let marks {
                complete.update(at: place) { $0 = marks }
            }
        }
    }
}
