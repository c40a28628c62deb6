/// A tree of data: empty, a leaf, or a node with children. A value; copies share structure.
package struct Node: Sendable {
    enum Content: Sendable {
        case empty
        case leaf(Scalar)
        case inner(Children)
    }

    let content: Content
    /// Nil for none; empty nodes have none.
    package let priority: Scalar?

    private init(_ content: Content, priority: Scalar?) {
        self.content = content
        self.priority = priority
    }

    package static let empty = Node(.empty, priority: nil)

    /// A leaf.
    package init(_ value: Scalar, priority: Scalar? = nil) {
        self.init(.leaf(value), priority: priority)
    }

    /// An inner node; empty children are omitted, and without children it is empty. Of equal keys the last applies.
    package init(children: some Sequence<(TreeKey, Node)>, priority: Scalar? = nil) {
        self = Node.inner(Children(children), priority: priority)
    }

    static func inner(_ children: Children, priority: Scalar?) -> Node {
        children.isEmpty ? .empty : Node(.inner(children), priority: priority)
    }

    package var isEmpty: Bool { if case .empty = content { true } else { false } }
    package var isLeaf: Bool { if case .leaf = content { true } else { false } }
    /// A leaf's value.
    package var value: Scalar? { if case .leaf(let value) = content { value } else { nil } }

    package var childCount: Int { inner?.count ?? 0 }
    var inner: Children? { if case .inner(let children) = content { children } else { nil } }

    /// In the order of keys.
    package var children: Children { inner ?? Children() }

    /// Empty where there is none.
    package func child(_ key: TreeKey) -> Node { inner?[key] ?? .empty }

    /// The node at a location below; empty where there is none.
    package func node(at path: TreePath) -> Node {
        var node = self
        for key in path.keys {
            guard let children = node.inner else { return .empty }
            node = children[key] ?? .empty
        }
        return node
    }

    /// The node with another priority; an empty node stays empty.
    package func with(priority: Scalar?) -> Node { isEmpty ? self : Node(content, priority: priority) }

    /// The node with another child. A leaf becomes an inner node that keeps its priority, unless the child is empty.
    package func setting(_ key: TreeKey, to child: Node) -> Node {
        if child.isEmpty {
            guard var children = inner, children[key] != nil else { return self }
            children[key] = nil
            return .inner(children, priority: priority)
        }
        var children = inner ?? Children()
        children[key] = child
        return .inner(children, priority: priority)
    }

    /// The node with another node at a location below.
    package func setting(_ path: TreePath, to node: Node) -> Node { setting(path.keys[...], to: node) }

    private func setting(_ keys: ArraySlice<TreeKey>, to node: Node) -> Node {
        guard let key = keys.first else { return node }
        return setting(key, to: child(key).setting(keys.dropFirst(), to: node))
    }
}

extension Node: Equatable {
    /// Of one shape with equal values and priorities.
    package static func == (lhs: Node, rhs: Node) -> Bool {
        guard lhs.priority == rhs.priority else { return false }
        switch (lhs.content, rhs.content) {
        case (.empty, .empty): return true
        case (.leaf(let left), .leaf(let right)): return left == right
        case (.inner(let left), .inner(let right)): return left == right
        default: return false
        }
    }
}
