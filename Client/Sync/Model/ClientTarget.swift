import HearthModel

/// A query in the server's form: orderings are normalized, and limit-to-last is reversed. Several queries can have one
/// target.
package struct ClientTarget: Sendable {
    package var path: ResourcePath
    package var collectionGroup: String?
    package var filters: [Filter]
    /// Normalized: the implied orders are included.
    package var orders: [Query.Order]
    package var limit: Int?
    package var start: ClientQuery.Bound?
    package var end: ClientQuery.Bound?

    package init(
        path: ResourcePath, collectionGroup: String? = nil, filters: [Filter] = [], orders: [Query.Order] = [],
        limit: Int? = nil, start: ClientQuery.Bound? = nil, end: ClientQuery.Bound? = nil
    ) {
        self.path = path
        self.collectionGroup = collectionGroup
        self.filters = filters
        self.orders = orders
        self.limit = limit
        self.start = start
        self.end = end
    }

    package var isDocumentTarget: Bool { path.isDocument && collectionGroup == nil && filters.isEmpty }
}

extension ClientTarget: Hashable {
    package static func == (lhs: ClientTarget, rhs: ClientTarget) -> Bool {
        lhs.path == rhs.path && lhs.collectionGroup == rhs.collectionGroup && lhs.limit == rhs.limit
            && lhs.orders == rhs.orders && lhs.start == rhs.start && lhs.end == rhs.end
            && Filter.areEqual(lhs.filters, rhs.filters)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(limit)
        UTF8Order.hash(CanonicalID.string(of: filters), into: &hasher)
    }
}
