import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part
/// of the service's contract.
extension Limits {
    // MARK: Storage

    /// Long reads (held across ticks of an event loop, or on a worker) that are open at a time in the whole process
    /// (ours).
    package static let longReadsMax = 64
    /// Long reads that wait for admission, and those of one account (ours).
    package static let longReadsWaitingMax = 20_000
    package static let longReadsWaitingShareMax = 5_000
    /// Commits that share one durable transaction at most (ours).
    package static let groupCommitRequestsMax = 1000
}
