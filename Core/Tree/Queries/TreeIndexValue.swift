/// The order value of a child: nothing, a value, or a node with children. All nodes with children are equal.
package enum TreeIndexValue: Hashable, Sendable {
    case null
    case scalar(Scalar)
    case inner

    package init(_ scalar: Scalar?) {
        self = if let scalar { .scalar(scalar) } else { .null }
    }

    init(valueOf node: Node) {
        self = if node.childCount > 0 { .inner } else { TreeIndexValue(node.value) }
    }

    /// Nothing, then the order of `Scalar`, then nodes with children. 15 and 15.0 are equal.
    package static func compare(_ lhs: TreeIndexValue, _ rhs: TreeIndexValue) -> Int {
        switch (lhs, rhs) {
        case (.scalar(let left), .scalar(let right)): Scalar.compare(left, right)
        default: lhs.rank - rhs.rank
        }
    }

    private var rank: Int {
        switch self {
        case .null: 0
        case .scalar: 1
        case .inner: 2
        }
    }
}

extension TreeQuery.Index {
    /// The order value of a child, which precedes its key in the order; nothing on the key index.
    package func value(of child: Node) -> TreeIndexValue {
        switch self {
        case .priority: TreeIndexValue(child.priority)
        case .key: .null
        case .value: TreeIndexValue(valueOf: child)
        case .child(let path): TreeIndexValue(valueOf: child.node(at: path))
        }
    }

    /// Negative, zero or positive, as one child is before, at or after another.
    package func compare(_ lhs: (key: TreeKey, node: Node), _ rhs: (key: TreeKey, node: Node)) -> Int {
        let order = TreeIndexValue.compare(value(of: lhs.node), value(of: rhs.node))
        return order != 0 ? order : TreeKey.compare(lhs.key, rhs.key)
    }
}
