import HearthModel

/// Threads for work that would block an event loop.
///
/// Short and long work have separate threads, so that a scan does not delay the decoding of a request. Brief work has
/// its own threads too, so that a large request does not delay a small answer.
package final class WorkerPool: Sendable {
    package enum Kind: Sendable {
        /// Work of some milliseconds at most, for any requester: it has its own bounds, and stops when it reaches them.
        case brief
        /// Work whose cost is that of a request or a response: decoding, windows of listeners, parts of files.
        case short
        /// Work that may read a whole database: sorts, aggregations, exports, indexes, administration.
        case long
    }

    private let briefJobs: WorkerGroup
    private let shortJobs: WorkerGroup
    private let longJobs: WorkerGroup

    /// - Parameters: see `WorkerGroup.init`.
    package init(
        shortThreadsMax: Int, longThreadsMax: Int, jobsMax: Int = Limits.workerJobsWaitingMax,
        sliceNanoseconds: Int64 = Limits.workerSliceNanoseconds
    ) {
        func group(_ name: String, _ threadsMax: Int) -> WorkerGroup {
            WorkerGroup(name: name, threadsMax: threadsMax, jobsMax: jobsMax, sliceNanoseconds: sliceNanoseconds)
        }
        briefJobs = group("hearth-brief", shortThreadsMax)
        shortJobs = group("hearth-short", shortThreadsMax)
        longJobs = group("hearth-long", longThreadsMax)
    }

    package func group(_ kind: Kind) -> WorkerGroup {
        switch kind {
        case .brief: briefJobs
        case .short: shortJobs
        case .long: longJobs
        }
    }

    /// See `WorkerGroup.run`.
    package func run(
        _ kind: Kind, for requester: Requester, cancellation: Cancellation? = nil, cost: Int = 1,
        refused: @escaping @Sendable (Status) -> Void, _ body: @escaping @Sendable () -> Void
    ) {
        group(kind).run(for: requester, cancellation: cancellation, cost: cost, refused: refused, body)
    }

    /// The same for work that yields to others. See `WorkerGroup.runInSlices`.
    package func runInSlices(
        _ kind: Kind, for requester: Requester, cancellation: Cancellation? = nil,
        refused: @escaping @Sendable (Status) -> Void, _ body: @escaping @Sendable (WorkerSlice) -> Void
    ) {
        group(kind).runInSlices(for: requester, cancellation: cancellation, refused: refused, body)
    }

    package var statistics: (brief: WorkerStatistics, short: WorkerStatistics, long: WorkerStatistics) {
        (briefJobs.statistics, shortJobs.statistics, longJobs.statistics)
    }

    package func stop() {
        briefJobs.stop()
        shortJobs.stop()
        longJobs.stop()
    }
}
