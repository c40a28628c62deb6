/// For readers of trees that are in order already.
extension Node {
    /// An inner node.
    /// - Parameter children: in the order of keys, none of them empty.
    package init(inOrder children: [(key: TreeKey, node: Node)], priority: Scalar?) {
        self = Node.inner(Children(inOrder: children), priority: priority)
    }
}

extension TreeChange {
    /// Converts changes that are made at once (`TreeOverlay`) to changes that may be made one after the other: none is
    /// below another; first the puts, then the removals, then priorities.
    package static func oneByOne(_ changes: [TreeChange]) -> [TreeChange] {
        if changes.count < 2 { return changes }
        return ChangeTree(changes).oneByOne()
    }
}
