import HearthModel

/// Threads for work that would hold up an event loop.
///
/// Short work and long work have threads of their own, so that nobody's scan makes the decoding of a request wait.
final class WorkerPool: Sendable {
    enum Kind: Sendable {
        /// Work whose cost is that of a request or an answer: decoding, windows of listeners, pieces of files.
        case short
        /// Work that may go through a whole database: sorts, aggregations, exports, indexes, administration.
        case long
    }

    private let shortJobs: WorkerGroup
    private let longJobs: WorkerGroup

    init(shortThreadsMax: Int, longThreadsMax: Int, jobsMax: Int = Limits.workerJobsWaitingMax) {
        shortJobs = WorkerGroup(name: "hearth-short", threadsMax: shortThreadsMax, jobsMax: jobsMax)
        longJobs = WorkerGroup(name: "hearth-long", threadsMax: longThreadsMax, jobsMax: jobsMax)
    }

    func group(_ kind: Kind) -> WorkerGroup {
        switch kind {
        case .short: shortJobs
        case .long: longJobs
        }
    }

    /// See `WorkerGroup.run`.
    func run(
        _ kind: Kind, for requester: Requester, cancellation: Cancellation? = nil, cost: Int = 1,
        refused: @escaping @Sendable (Status) -> Void, _ body: @escaping @Sendable () -> Void
    ) {
        group(kind).run(for: requester, cancellation: cancellation, cost: cost, refused: refused, body)
    }

    var statistics: (short: WorkerStatistics, long: WorkerStatistics) { (shortJobs.statistics, longJobs.statistics) }

    func stop() {
        shortJobs.stop()
        longJobs.stop()
    }
}
