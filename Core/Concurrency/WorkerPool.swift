import HearthModel

/// Threads for work that would hold up an event loop.
///
/// Short work and long work have threads of their own, so that nobody's scan makes the decoding of a request wait; and so has
/// what is brief, so that nobody's large request makes a small answer wait.
package final class WorkerPool: Sendable {
    package enum Kind: Sendable {
        /// Work of some milliseconds at the most, whoever asks for it: it has bounds of its own, and is left when it comes to
        /// them.
        case brief
        /// Work whose cost is that of a request or an answer: decoding, windows of listeners, pieces of files.
        case short
        /// Work that may go through a whole database: sorts, aggregations, exports, indexes, administration.
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

    /// The same for work that gives way to others. See `WorkerGroup.runInSlices`.
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
