import HearthModel

/// A query in the user's form. `ClientTarget` is the form for the server.
///
/// Two queries are equal when they share one listen at the server and show the same end of a limit.
package struct ClientQuery: Sendable {
    package enum LimitType: UInt8, Sendable {
        case first
        case last
    }

    /// Values for the first orderings, in their order.
    package struct Bound: Sendable, Equatable {
        package var values: [Value]
        package var isInclusive: Bool

        package init(values: [Value], isInclusive: Bool) {
            self.values = values
            self.isInclusive = isInclusive
        }

        package static func == (lhs: Self, rhs: Self) -> Bool {
            lhs.isInclusive == rhs.isInclusive && StrictEquality.equal(.array(lhs.values), .array(rhs.values))
        }
    }

    /// The document (even number of segments) or the collection's path (odd number). With a `collectionGroup` it is the
    /// common parent, usually the root.
    package var path: ResourcePath
    package var collectionGroup: String?
    /// All must match. `field` filters compare by value; `isNull` and `isNaN` are equality with null and NaN here.
    package var filters: [Filter]
    /// As the user gave them; `normalizedOrders` has the implied ones, too.
    package var orders: [Query.Order]
    package var limit: Int?
    package var limitType: LimitType
    package var start: Bound?
    package var end: Bound?

    package init(
        path: ResourcePath, collectionGroup: String? = nil, filters: [Filter] = [], orders: [Query.Order] = [],
        limit: Int? = nil, limitType: LimitType = .first, start: Bound? = nil, end: Bound? = nil
    ) {
        self.path = path
        self.collectionGroup = collectionGroup
        self.filters = filters
        self.orders = orders
        self.limit = limit
        self.limitType = limitType
        self.start = start
        self.end = end
    }

    package var isDocumentQuery: Bool { path.isDocument && collectionGroup == nil && filters.isEmpty }

    /// Whether the result contains every document of the collection.
    package var matchesAllDocuments: Bool {
        filters.isEmpty && limit == nil && start == nil && end == nil
            && (orders.isEmpty || orders.count == 1 && orders[0].field.isDocumentName)
    }

    /// The explicit orders, then the fields with inequalities that have none, then the name.
    package var normalizedOrders: [Query.Order] {
        var result = orders
        let descending = orders.last?.descending ?? false
        var ordered = Set(orders.map(\.field))
        for field in filters.inequalityFields.sorted() where !field.isDocumentName && ordered.insert(field).inserted {
            result.append(Query.Order(field: field, descending: descending))
        }
        if !ordered.contains(.documentName) {
            result.append(Query.Order(field: .documentName, descending: descending))
        }
        return result
    }

    /// The order in which the user sees the documents.
    package var comparator: DocumentComparator { DocumentComparator(orders: normalizedOrders) }

    /// The target to send to the server.
    package var target: ClientTarget { target(orders: normalizedOrders) }

    /// The target to send to the server for aggregations. They do not depend on the order, so no order is implied, except
    /// those that a cursor at a document has values for.
    package var aggregationTarget: ClientTarget {
        let count = max(orders.count, start?.values.count ?? 0, end?.values.count ?? 0)
        return target(orders: Array(normalizedOrders.prefix(count)))
    }

    private func target(orders: [Query.Order]) -> ClientTarget {
        let isReversed = limit != nil && limitType == .last
        return ClientTarget(
            path: path, collectionGroup: collectionGroup, filters: filters.flattened,
            orders: isReversed ? orders.map { Query.Order(field: $0.field, descending: !$0.descending) } : orders,
            limit: limit, start: isReversed ? end : start, end: isReversed ? start : end)
    }

    /// The same query below another path. A collection group query consists of one of these for each parent.
    func inCollection(_ path: ResourcePath) -> ClientQuery {
        var query = self
        query.path = path
        query.collectionGroup = nil
        return query
    }
}

extension ClientQuery: Hashable {
    package static func == (lhs: ClientQuery, rhs: ClientQuery) -> Bool {
        lhs.path == rhs.path && lhs.limit == rhs.limit && (lhs.limit == nil || lhs.limitType == rhs.limitType)
            && lhs.target == rhs.target
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(limit)
        UTF8Order.hash(CanonicalID.string(of: filters.flattened), into: &hasher)
    }
}
