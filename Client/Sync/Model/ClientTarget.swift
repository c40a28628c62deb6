import HearthModel

/// A query as the server sees it: orderings normalized, limit-to-last turned round. Several queries can have one target.
public struct ClientTarget: Sendable {
    public var path: ResourcePath
    public var collectionGroup: String?
    public var filters: [Filter]
    /// Normalized: the implied ones are in it.
    public var orders: [Query.Order]
    public var limit: Int?
    public var start: ClientQuery.Bound?
    public var end: ClientQuery.Bound?

    public init(
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

    public var isDocumentTarget: Bool { path.isDocument && collectionGroup == nil && filters.isEmpty }
}

extension ClientTarget: Hashable {
    public static func == (lhs: ClientTarget, rhs: ClientTarget) -> Bool {
        lhs.path == rhs.path && lhs.collectionGroup == rhs.collectionGroup && lhs.limit == rhs.limit
            && lhs.orders == rhs.orders && lhs.start == rhs.start && lhs.end == rhs.end
            && Filter.areEqual(lhs.filters, rhs.filters)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(limit)
        UTF8Order.hash(CanonicalID.text(of: filters), into: &hasher)
    }
}

/// What the client knows of a target.
public struct TargetData: Sendable {
    public enum Purpose: UInt8, Sendable {
        case listen
        case existenceFilterMismatch
        case existenceFilterMismatchBloom
        case limboResolution
    }

    public var target: ClientTarget
    /// Even: user targets, from the target cache, first 2. Odd: limbo targets, not in the cache.
    public var targetID: Int32
    public var purpose: Purpose
    public var sequenceNumber: Int64
    public var snapshotVersion: Timestamp
    public var lastLimboFreeVersion: Timestamp
    public var resumeToken: [UInt8]
    /// Only for a request: not in the cache.
    public var expectedCount: Int32?

    public init(
        target: ClientTarget, targetID: Int32, purpose: Purpose = .listen, sequenceNumber: Int64,
        snapshotVersion: Timestamp = .none, lastLimboFreeVersion: Timestamp = .none, resumeToken: [UInt8] = [],
        expectedCount: Int32? = nil
    ) {
        self.target = target
        self.targetID = targetID
        self.purpose = purpose
        self.sequenceNumber = sequenceNumber
        self.snapshotVersion = snapshotVersion
        self.lastLimboFreeVersion = lastLimboFreeVersion
        self.resumeToken = resumeToken
        self.expectedCount = expectedCount
    }
}
