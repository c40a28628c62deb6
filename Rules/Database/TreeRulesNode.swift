import HearthTree

/// The rules at one location and below it.
final class TreeRulesNode: Sendable {
    let read: TreeRule?
    let write: TreeRule?
    let validate: TreeRule?
    let indexes: [TreeQuery.Index]
    let children: [TreeKey: TreeRulesNode]
    /// For the children that no rule names; with its name, including the dollar sign.
    let wildcard: (name: String, node: TreeRulesNode)?
    /// Whether there is a `.validate` here or below.
    let validates: Bool

    init(
        read: TreeRule?, write: TreeRule?, validate: TreeRule?, indexes: [TreeQuery.Index],
        children: [TreeKey: TreeRulesNode], wildcard: (name: String, node: TreeRulesNode)?
    ) {
        self.read = read
        self.write = write
        self.validate = validate
        self.indexes = indexes
        self.children = children
        self.wildcard = wildcard
        validates =
            validate != nil || wildcard?.node.validates ?? false || children.values.contains { $0.validates }
    }

    /// The rules of a child: an explicit name overrides the wildcard completely.
    func child(_ key: TreeKey) -> (node: TreeRulesNode, isWildcard: Bool)? {
        if let child = children[key] { return (child, false) }
        return wildcard.map { ($0.node, true) }
    }

    /// The rules of a location below.
    func node(at path: TreePath) -> TreeRulesNode? {
        var node = self
        for key in path.keys {
            guard let child = node.child(key) else { return nil }
            node = child.node
        }
        return node
    }
}

/// A `.read`, `.write` or `.validate`.
struct TreeRule: Sendable {
    let expression: TreeExpression
    /// The offset of the value in the document.
    let offset: Int
}
