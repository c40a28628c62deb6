import HearthTree

/// Paths inside children, as a trie.
struct OrderPaths {
    /// Whether a path ends here.
    private(set) var isEnd = false
    private(set) var branches: [TreeKey: OrderPaths] = [:]

    var isEmpty: Bool { !isEnd && branches.isEmpty }

    mutating func insert(_ keys: ArraySlice<TreeKey>) {
        guard let key = keys.first else {
            isEnd = true
            return
        }
        branches[key, default: OrderPaths()].insert(keys.dropFirst())
    }

    mutating func remove(_ keys: ArraySlice<TreeKey>) {
        guard let key = keys.first else {
            isEnd = false
            return
        }
        branches[key]?.remove(keys.dropFirst())
        if branches[key]?.isEmpty == true { branches[key] = nil }
    }
}
