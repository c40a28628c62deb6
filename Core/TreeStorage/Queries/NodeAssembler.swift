import HearthTree

/// Builds nodes from the events of a walk.
struct NodeAssembler: SubtreeVisitor {
    private var open: [(key: TreeKey?, priority: Scalar?, children: [(key: TreeKey, node: Node)])] = []
    private(set) var result = Node.empty

    mutating func open(_ key: TreeKey?, priority: Scalar?) { open.append((key, priority, [])) }

    mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) {
        add(key, Node(value, priority: priority))
    }

    mutating func close() {
        guard let node = open.popLast() else { preconditionFailure("a node ends without a beginning") }
        add(node.key, Node(inOrder: node.children, priority: node.priority))
    }

    private mutating func add(_ key: TreeKey?, _ node: Node) {
        if let key { open[open.count - 1].children.append((key, node)) } else { result = node }
    }
}
