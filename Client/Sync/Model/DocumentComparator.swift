import HearthModel

/// The order of a query's documents. It always ends with the key, so that no two documents are at one position.
package struct DocumentComparator: Sendable {
    package let orders: [Query.Order]

    /// - Parameter orders: normalized: `__name__` is among them.
    package init(orders: [Query.Order]) {
        precondition(orders.contains { $0.field.isDocumentName }, "the order must end with the key")
        self.orders = orders
        keyDirection = orders.first.flatMap { $0.field.isDocumentName ? ($0.descending ? -1 : 1) : nil }
    }

    /// 1 when the order is that of the keys alone, -1 when it is the reverse of that, nil when fields count.
    let keyDirection: Int?

    package static let byKey = DocumentComparator(orders: [Query.Order(field: .documentName, descending: false)])

    package var isByKey: Bool { keyDirection != nil }

    /// Negative, zero or positive, as a document sorts before, at or after a key: only in an order by key.
    func compare(_ document: ClientDocument, toKey key: ResourcePath) -> Int {
        (keyDirection ?? 1) * ResourcePath.compare(document.key, key)
    }

    /// Negative, zero or positive, as `lhs` sorts before, equal to or after `rhs`. A missing field sorts first;
    /// matching documents have none.
    package func compare(_ lhs: ClientDocument, _ rhs: ClientDocument) -> Int {
        if let keyDirection { return keyDirection * ResourcePath.compare(lhs.key, rhs.key) }
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
