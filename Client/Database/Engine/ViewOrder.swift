import HearthTree

/// The keys of a view's children in the order of its query, updated with each change, so that a binary search finds
/// the previous sibling of a child.
///
/// As long as no child has an indexed value the order is that of the keys, which the node has already. This is the
/// case for most locations that are ordered by priority.
struct ViewOrder {
    private let index: TreeQuery.Index
    private var shown: Node
    /// Nil while the order is that of the keys.
    private var entries: SortedEntries?

    init(_ index: TreeQuery.Index, _ shown: Node) {
        self.index = index
        self.shown = shown
        rebuild()
    }

    private mutating func rebuild() {
        entries = nil
        guard index != .key, shown.children.contains(where: { index.value(of: $0.node) != .null }) else { return }
        let sorted = shown.children.map { Self.entry($0.key, $0.node, index) }
            .sorted { SortedEntries.Entry.compare($0, $1) < 0 }
        entries = SortedEntries(inOrder: sorted[...])
    }

    private static func entry(_ key: TreeKey, _ child: Node, _ index: TreeQuery.Index) -> SortedEntries.Entry {
        SortedEntries.Entry(value: index.value(of: child), key: key)
    }

    /// - Parameters:
    ///   - node: the view's new content.
    ///   - changes: all differences from the former content.
    mutating func update(to node: Node, _ changes: [ChildChange]) {
        shown = node
        if entries == nil {
            if index != .key, changes.contains(where: { index.value(of: $0.new) != .null }) { rebuild() }
            return
        }
        for change in changes {
            if !change.old.isEmpty { entries?.remove(Self.entry(change.key, change.old, index)) }
            if !change.new.isEmpty { entries?.insert(Self.entry(change.key, change.new, index)) }
        }
    }

    /// The previous sibling of an existing child; nil for the first.
    func key(before key: TreeKey, _ child: Node) -> TreeKey? {
        if let entries { return entries.before(Self.entry(key, child, index))?.key }
        let children = shown.children
        let position = children.position(of: key)
        return position == 0 ? nil : children[position - 1].key
    }
}
