import HearthTree

/// Values by path.
struct PathTrie<Value> {
    var value: Value?
    private(set) var children: [TreeKey: PathTrie<Value>] = [:]

    init() {}

    var isEmpty: Bool { value == nil && children.isEmpty }

    /// Assigning nil removes the value, and keeps the values below.
    subscript(path: TreePath) -> Value? {
        get { subtrie(at: path)?.value }
        set { update(at: path.keys[...]) { $0.value = newValue } }
    }

    func subtrie(at path: TreePath) -> PathTrie<Value>? {
        var trie = self
        for key in path.keys {
            guard let next = trie.children[key] else { return nil }
            trie = next
        }
        return trie
    }

    /// Changes the values at and below a path; removes empty nodes.
    mutating func update(at path: TreePath, _ body: (inout PathTrie<Value>) -> Void) {
        update(at: path.keys[...], body)
    }

    private mutating func update(at keys: ArraySlice<TreeKey>, _ body: (inout PathTrie<Value>) -> Void) {
        guard let key = keys.first else { return body(&self) }
        children[key, default: PathTrie()].update(at: keys.dropFirst(), body)
        if let child = children[key], child.isEmpty { children[key] = nil }
    }

    /// The first value from the root down to a path, and its path.
    func first(atOrAbove path: TreePath) -> (path: TreePath, value: Value)? {
        var trie = self
        for depth in 0...path.count {
            if let value = trie.value { return (TreePath(keys: Array(path.keys[..<depth])), value) }
            guard depth < path.count, let next = trie.children[path.keys[depth]] else { return nil }
            trie = next
        }
        return nil
    }

    /// The values at and below this node, parents first, in the order of keys.
    func forEach(below path: TreePath = .root, _ body: (TreePath, Value) -> Void) {
        if let value { body(path, value) }
        for key in children.keys.sorted() { children[key]?.forEach(below: path.child(key), body) }
    }
}
