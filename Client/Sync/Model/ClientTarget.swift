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

/// The client's state of a target.
package struct TargetData: Sendable {
    package enum Purpose: UInt8, Sendable {
        case listen
        case existenceFilterMismatch
        case existenceFilterMismatchBloom
        case limboResolution
    }

    package var target: ClientTarget
    /// Even: user targets, from the target cache, first 2. Odd: limbo targets, not in the cache.
    package var targetID: Int32
    package var purpose: Purpose
    package var sequenceNumber: Int64
    package var snapshotVersion: Timestamp
    package var lastLimboFreeVersion: Timestamp
    package var resumeToken: [UInt8]
    /// Only for a request: not in the cache.
    package var expectedCount: Int32?

    package init(
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
