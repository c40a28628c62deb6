import HearthModel

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
