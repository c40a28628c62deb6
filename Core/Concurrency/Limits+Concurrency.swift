import HearthModel

/// The bounds of this module and of the modules that build upon it. A bound marked "ours" guards memory or time and is
/// not part of the service's contract.
extension Limits {
    // MARK: Workers and memory; our own bounds

    /// Jobs that wait in a group of workers.
    package static let workerJobsWaitingMax = 10_000
    /// Jobs of a group of workers that have begun and then yielded.
    package static let workerJobsParkedMax = 16
    /// How long a worker's job runs before it yields to waiting jobs.
    package static let workerSliceNanoseconds: Int64 = 10_000_000
}
