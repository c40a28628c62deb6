import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: Workers and memory; bounds of ours

    /// Jobs that wait for a group of workers.
    package static let workerJobsWaitingMax = 10_000
    /// Jobs of a group of workers that have begun and let others go on.
    package static let workerJobsParkedMax = 16
    /// For which a worker's job runs before it lets others go on, when any wait.
    package static let workerSliceNanoseconds: Int64 = 10_000_000
}
