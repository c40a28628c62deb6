import HearthModel

/// A tree that need not be in memory: that of a store, or one with changes that are not made yet. Missing locations are
/// empty.
package protocol TreeData {
    /// The value of the leaf at a location; nil for an inner or an empty node.
    func value(at path: TreePath) throws(Status) -> Scalar?
    /// The same, without a large string: `value(at:)` reads it.
    func leaf(at path: TreePath) throws(Status) -> Leaf?
    /// The priority of a location.
    func priority(at path: TreePath) throws(Status) -> Scalar?
    /// Whether a location has children.
    func hasChildren(at path: TreePath) throws(Status) -> Bool
    /// Whether a location has a value.
    func exists(at path: TreePath) throws(Status) -> Bool
    /// All data of a location. The cost depends on its size.
    func node(at path: TreePath) throws(Status) -> Node
    /// The names of the children of a location, in their order: the first ones behind `key`, or from the beginning.
    func keys(at path: TreePath, after key: TreeKey?, limit: Int) throws(Status) -> [TreeKey]
}

extension TreeData {
    /// For trees that can only visit all children.
    package func keys(at path: TreePath, after key: TreeKey?, limit: Int) throws(Status) -> [TreeKey] {
        try node(at: path).keys(at: .root, after: key, limit: limit)
    }
}

extension Node: TreeData {
    package func value(at path: TreePath) -> Scalar? { node(at: path).value }
    package func leaf(at path: TreePath) -> Leaf? { value(at: path).map(Leaf.init) }
    package func priority(at path: TreePath) -> Scalar? { node(at: path).priority }
    package func hasChildren(at path: TreePath) -> Bool { node(at: path).childCount > 0 }
    package func exists(at path: TreePath) -> Bool { !node(at: path).isEmpty }

    package func keys(at path: TreePath, after key: TreeKey?, limit: Int) -> [TreeKey] {
        let children = node(at: path).children
        var first = 0
        if let key {
            first = children.position(of: key)
            if first < children.count, children[first].key == key { first += 1 }
        }
        return children[first..<min(children.count, first + limit)].map(\.key)
    }
}
