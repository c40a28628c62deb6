/// For those who read trees where they are in order already.
extension Node {
    /// An inner node.
    /// - Parameter children: in the order of keys, none of them empty.
    package init(inOrder children: [(key: TreeKey, node: Node)], priority: Scalar?) {
        self = Node.inner(Children(inOrder: children), priority: priority)
    }
}

extension TreeChange {
    /// What changes that are made at once (`TreeOverlay`) come to, as changes that may be made one after the other: none lies
    /// below another; first what is put, then what is taken away, then priorities.
    package static func oneByOne(_ changes: [TreeChange]) -> [TreeChange] {
        if changes.count < 2 { return changes }
        return ChangeTree(changes).oneByOne()
    }
}
