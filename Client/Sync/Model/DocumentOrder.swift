import HearthModel

extension ResourcePath {
    /// Segment by segment, numeric ids first; negative, zero or positive.
    static func compare(_ lhs: ResourcePath, _ rhs: ResourcePath) -> Int {
        let shared = min(lhs.segments.count, rhs.segments.count)
        for index in 0..<shared {
            let order = ValueOrder.compareSegments(lhs.segments[index], rhs.segments[index])
            if order != 0 { return order }
        }
        return lhs.segments.count - rhs.segments.count
    }

    /// Whether this path is `other` or an ancestor of it.
    func isPrefix(of other: ResourcePath) -> Bool {
        segments.count <= other.segments.count && zip(segments, other.segments).allSatisfy { UTF8Order.equal($0, $1) }
    }

    /// Whether this path is the direct parent of `other`.
    func isParent(of other: ResourcePath) -> Bool {
        segments.count + 1 == other.segments.count && isPrefix(of: other)
    }

    /// The id of the collection in which a document is.
    var collectionID: String { segments[segments.count - 2] }

    /// From a string of segments joined by `/`; an empty one is the root.
    init(string: String) {
        self.init(string.isEmpty ? [] : string.split(separator: "/", omittingEmptySubsequences: false).map(String.init))
    }

    /// The path in a reference value, without the database; nil for a value that is not a document's name.
    init?(reference value: Value) {
        guard case .reference(let name) = value else { return nil }
        let segments = name.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.count > 5 else { return nil }
        self.init(segments.dropFirst(5).map(String.init))
    }
}

/// The order of a query's documents. It always ends with the key, so that no two documents are at one position.
package struct DocumentComparator: Sendable {
    package let orders: [Query.Order]

    /// - Parameter orders: normalized: `__name__` is among them.
    package init(orders: [Query.Order]) {
        precondition(orders.contains { $0.field.isDocumentName }, "the order must end with the key")
        self.orders = orders
        isByKey = orders.first.map { $0.field.isDocumentName && !$0.descending } ?? false
    }

    /// The order is the order of the keys alone.
    private let isByKey: Bool

    package static let byKey = DocumentComparator(orders: [Query.Order(field: .documentName, descending: false)])

    /// Negative, zero or positive, as `lhs` sorts before, equal to or after `rhs`. A missing field sorts first;
    /// matching documents have none.
    package func compare(_ lhs: ClientDocument, _ rhs: ClientDocument) -> Int {
        if isByKey { return ResourcePath.compare(lhs.key, rhs.key) }
        for order in orders {
            var result: Int
            if order.field.isDocumentName {
                result = ResourcePath.compare(lhs.key, rhs.key)
            } else {
                switch (lhs.fields[path: order.field], rhs.fields[path: order.field]) {
                case (let left?, let right?): result = ClientValueOrder.compare(left, right)
                case (nil, nil): result = 0
                case (nil, _): result = -1
                case (_, nil): result = 1
                }
            }
            if result != 0 { return order.descending ? -result : result }
        }
        return 0
    }
}
