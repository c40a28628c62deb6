/// The leaves of a tree in the order of their keys; an inner node's priority is a leaf `.priority` among its children.
enum LeafWalk {
    static func visit(_ node: Node, _ visitor: (_ keys: [TreeKey], _ leaf: Node) -> Void) {
        var keys: [TreeKey] = []
        visit(node, &keys, visitor)
    }

    private static func visit(_ node: Node, _ keys: inout [TreeKey], _ visitor: ([TreeKey], Node) -> Void) {
        guard let children = node.inner else {
            if !node.isEmpty { visitor(keys, node) }
            return
        }
        var priority = node.priority
        for (key, child) in children {
            if let value = priority, .priority < key {
                visitor(keys + [.priority], Node(value))
                priority = nil
            }
            keys.append(key)
            visit(child, &keys, visitor)
            keys.removeLast()
        }
        if let value = priority { visitor(keys + [.priority], Node(value)) }
    }
}
