import HearthModel

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
