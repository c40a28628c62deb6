import HearthTree

/// The keys of a view's children in the order of its query, kept while they change, so that the sibling in front of a child is
/// found by bisection.
///
/// As long as no child has a value on the index the order is that of the keys, which the node keeps itself. That is the
/// case of most places that are ordered by priority.
struct ViewOrder {
    private struct Entry {
        let value: TreeIndexValue
        let key: TreeKey

        static func compare(_ lhs: Entry, _ rhs: Entry) -> Int {
            let order = TreeIndexValue.compare(lhs.value, rhs.value)
            return order != 0 ? order : TreeKey.compare(lhs.key, rhs.key)
        }
    }

    private let index: TreeQuery.Index
    private var shown: Node
    /// Nil while the order is that of the keys.
    private var entries: [Entry]?

    init(_ index: TreeQuery.Index, _ shown: Node) {
        self.index = index
        self.shown = shown
        rebuild()
    }

    private mutating func rebuild() {
        entries = nil
        guard index != .key, shown.children.contains(where: { index.value(of: $0.node) != .null }) else { return }
        entries = shown.children.map { Entry(value: index.value(of: $0.node), key: $0.key) }
            .sorted { Entry.compare($0, $1) < 0 }
    }

    /// - Parameters:
    ///   - node: the view's new content.
    ///   - changes: all differences to the one before.
    mutating func update(to node: Node, _ changes: [ChildChange]) {
        shown = node
        if entries == nil {
            if index != .key, changes.contains(where: { index.value(of: $0.new) != .null }) { rebuild() }
            return
        }
        // Moving entries one by one costs as many moves as there are entries, each.
        if changes.count > 32 + shown.childCount / 32 { return rebuild() }
        for change in changes {
            if !change.old.isEmpty {
                let old = Entry(value: index.value(of: change.old), key: change.key)
                let place = place(of: old)
                entries?.remove(at: place)
            }
            if !change.new.isEmpty {
                let new = Entry(value: index.value(of: change.new), key: change.key)
                let place = place(of: new)
                entries?.insert(new, at: place)
            }
        }
    }

    private func place(of entry: Entry) -> Int {
        guard let entries else { return 0 }
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if Entry.compare(entries[middle], entry) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The sibling in front of a child that is there; nil for the first.
    func key(before key: TreeKey, _ child: Node) -> TreeKey? {
        if let entries {
            let place = place(of: Entry(value: index.value(of: child), key: key))
            return place == 0 ? nil : entries[place - 1].key
        }
        let children = shown.children
        let place = children.place(of: key)
        return place == 0 ? nil : children[place - 1].key
    }
}
