import HearthModel

/// A query as the user asked it. `ClientTarget` is what the server is asked.
public struct ClientQuery: Sendable {
    public enum LimitType: UInt8, Sendable {
        case first
        case last
    }

    /// Values for the first orderings, in their order.
    public struct Bound: Sendable {
        public var values: [Value]
        public var isInclusive: Bool

        public init(values: [Value], isInclusive: Bool) {
            self.values = values
            self.isInclusive = isInclusive
        }
    }

    /// The document (even), or the collection's path (odd); with a `collectionGroup` the parent of all, mostly the root.
    public var path: ResourcePath
    public var collectionGroup: String?
    /// All must match. `field` filters compare by value; `isNull` and `isNaN` are equality with null and NaN here.
    public var filters: [Filter]
    /// As the user gave them; `normalizedOrders` has the implied ones, too.
    public var orders: [Query.Order]
    public var limit: Int?
    public var limitType: LimitType
    public var start: Bound?
    public var end: Bound?

    public init(
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

    public var isDocumentQuery: Bool { path.isDocument && collectionGroup == nil && filters.isEmpty }
}
