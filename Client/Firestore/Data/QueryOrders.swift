internal import HearthModel
internal import HearthSync

/// A query's orders, the implied ones included, and the order of documents that they make.
struct QueryOrders: Sendable {
    /// Explicit ones, then inequality fields by their paths, then the name; the implied ones in the last explicit direction.
    let orders: [ModelOrder]

    init(_ query: ClientQuery) {
        var orders = query.orders
        let isDescending = query.orders.last?.descending ?? false
        var inequalities: Set<ModelFieldPath> = []
        for filter in query.filters { Self.collectInequalities(filter, into: &inequalities) }
        for path in inequalities.sorted() where !path.isDocumentName && !orders.contains(where: { $0.field == path }) {
            orders.append(ModelOrder(field: path, descending: isDescending))
        }
        if !orders.contains(where: { $0.field.isDocumentName }) {
            orders.append(ModelOrder(field: .documentName, descending: isDescending))
        }
        self.orders = orders
    }

    private static func collectInequalities(_ filter: ModelFilter, into paths: inout Set<ModelFieldPath>) {
        switch filter {
        case .and(let members), .or(let members): for member in members { collectInequalities(member, into: &paths) }
        case .field(let path, let op, _): if op.isInequality { paths.insert(path) }
        case .unary(let path, let op): if op.isInequality { paths.insert(path) }
        }
    }

    /// Negative when `left` stands before `right`. Ends in the key, so only equal keys give zero.
    func compare(_ left: ClientDocument, _ right: ClientDocument) -> Int {
        for order in orders {
            let result =
                order.field.isDocumentName
                ? Self.compareKeys(left.key, right.key)
                : ValueOrder.compare(left.fields[path: order.field] ?? .null, right.fields[path: order.field] ?? .null)
            if result != 0 { return order.descending ? -result : result }
        }
        return Self.compareKeys(left.key, right.key)
    }

    private static func compareKeys(_ left: ResourcePath, _ right: ResourcePath) -> Int {
        for (x, y) in zip(left.segments, right.segments) {
            let result = ValueOrder.compareSegments(x, y)
            if result != 0 { return result }
        }
        return left.segments.count - right.segments.count
    }
}
