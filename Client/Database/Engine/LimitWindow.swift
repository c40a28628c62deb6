import HearthTree

/// The children that a query with a limit chooses from, on both sides of the limit: a change of one child moves at
/// most one other child across it.
struct LimitWindow {
    private let query: TreeQuery
    private let limit: Int
    private var inside: SortedEntries
    private var outside: SortedEntries

    init(_ query: TreeQuery, limit: Int, of node: Node) {
        self.query = query
        self.limit = limit
        let entries = node.children.compactMap { Self.entry($0.key, $0.node, query) }
            .sorted { SortedEntries.Entry.compare($0, $1) < 0 }
        if query.isLimitedToLast {
            inside = SortedEntries(inOrder: entries.suffix(limit))
            outside = SortedEntries(inOrder: entries.dropLast(limit))
        } else {
            inside = SortedEntries(inOrder: entries.prefix(limit))
            outside = SortedEntries(inOrder: entries.dropFirst(limit))
        }
    }

    private static func entry(_ key: TreeKey, _ child: Node, _ query: TreeQuery) -> SortedEntries.Entry? {
        if child.isEmpty { return nil }
        let value = query.indexValue(of: child)
        return query.contains(key, value: value) ? SortedEntries.Entry(value: value, key: key) : nil
    }

    /// Whether the query includes a child. The child must be one of the candidates, in its present state.
    func contains(_ key: TreeKey, _ child: Node) -> Bool {
        Self.entry(key, child, query).map(isInside) ?? false
    }

    private func isInside(_ entry: SortedEntries.Entry) -> Bool {
        guard let border = query.isLimitedToLast ? outside.last : outside.first else { return true }
        let order = SortedEntries.Entry.compare(entry, border)
        return query.isLimitedToLast ? order > 0 : order < 0
    }

    /// - Parameter moved: receives the keys of other children that crossed the limit.
    mutating func change(_ key: TreeKey, from old: Node, to new: Node, _ moved: inout Set<TreeKey>) {
        if let entry = Self.entry(key, old, query) {
            if isInside(entry) { inside.remove(entry) } else { outside.remove(entry) }
        }
        if let entry = Self.entry(key, new, query) {
            if isInside(entry) { inside.insert(entry) } else { outside.insert(entry) }
        }
        while inside.count > limit, let entry = query.isLimitedToLast ? inside.first : inside.last {
            inside.remove(entry)
            outside.insert(entry)
            moved.insert(entry.key)
        }
        while inside.count < limit, let entry = query.isLimitedToLast ? outside.last : outside.first {
            outside.remove(entry)
            inside.insert(entry)
            moved.insert(entry.key)
        }
    }
}
