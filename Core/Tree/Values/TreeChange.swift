/// The new node of a location, or, where the path's last key is `.priority`, a priority: a leaf, or empty for none.
package struct TreeChange: Equatable, Sendable {
    package var path: TreePath
    package var node: Node

    package init(path: TreePath, node: Node) {
        self.path = path
        self.node = node
    }

    package var isPriority: Bool { path.last == .priority }

    /// The changed location: for a priority the location that has the priority.
    package var location: TreePath { isPriority ? TreePath(keys: Array(path.keys.dropLast())) : path }
}

extension Node {
    /// The node after a change, whose path is relative to it.
    package func applying(_ change: TreeChange) -> Node {
        guard change.isPriority else { return setting(change.path, to: change.node) }
        let location = change.location
        let node = node(at: location)
        return node.isEmpty ? self : setting(location, to: node.with(priority: change.node.value))
    }

    /// The node after changes that are made at once: see `TreeOverlay`.
    package func applying(_ changes: [TreeChange]) -> Node {
        if changes.count == 1 { return applying(changes[0]) }
        return ChangeTree(changes).applied(to: self)
    }
}
