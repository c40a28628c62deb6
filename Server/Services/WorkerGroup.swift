import HearthConcurrency
import HearthModel

/// Some threads with one queue, which is served in turn between accounts and within an account between connections.
///
/// Of every job exactly one closure is called, once: the job, or `refused` with the reason for which it will never run.
///
/// `@unchecked Sendable`: the monitor guards everything that changes.
final class WorkerGroup: @unchecked Sendable {
    private struct Job {
        let cancellation: Cancellation?
        let queuedAt: MonotonicTime
        let body: @Sendable () -> Void
        let refused: @Sendable (Status) -> Void
    }

    private let monitor = Monitor()
    private var queue = FairQueue<Job>()
    private var threads: [NamedThread] = []
    private var idleCount = 0
    private var isStopping = false
    private var figures = WorkerStatistics()
    private let name: String
    private let threadsMax: Int
    private let jobsMax: Int

    /// - Parameters:
    ///   - name: of the threads, which are numbered, at most 12 bytes.
    ///   - jobsMax: that wait.
    init(name: String, threadsMax: Int, jobsMax: Int = Limits.workerJobsWaitingMax) {
        self.name = name
        self.threadsMax = max(1, threadsMax)
        self.jobsMax = max(1, jobsMax)
    }

    var statistics: WorkerStatistics {
        monitor.withLock {
            var now = figures
            now.waiting = queue.count
            return now
        }
    }

    /// Runs `body` on one of the threads when it is the requester's turn.
    /// - Parameters:
    ///   - cancellation: when it is set before the job begins, the job is refused with CANCELLED.
    ///   - cost: what the job takes, in any unit that all jobs of the group share.
    ///   - refused: called instead of `body`, from any thread. RESOURCE_EXHAUSTED: too many jobs wait, and most of them are
    ///     this requester's; UNAVAILABLE: the threads have ended.
    func run(
        for requester: Requester, cancellation: Cancellation? = nil, cost: Int = 1,
        refused: @escaping @Sendable (Status) -> Void, _ body: @escaping @Sendable () -> Void
    ) {
        let job = Job(cancellation: cancellation, queuedAt: .now, body: body, refused: refused)
        var victim: (job: Job, status: Status)?
        monitor.withLock {
            if isStopping || threads.isEmpty && !startThread() {
                victim = (job, Self.stopped)
                return
            }
            queue.append(job, for: requester, cost: cost)
            if queue.count > jobsMax, let last = queue.popLastOfLongest() {
                figures.refused += 1
                victim = (last, Self.full)
            }
            // A thread that was woken for the job before still counts as idle.
            if idleCount >= queue.count || threads.count >= threadsMax {
                monitor.signal()
            } else {
                _ = startThread()
            }
        }
        if let victim { victim.job.refused(victim.status) }
    }

    private static let full = Status(.resourceExhausted, "Too many of your requests wait for the server's workers.")
    private static let stopped = Status(.unavailable, "The server is shutting down.")
    private static let cancelled = Status(.cancelled, "The client has cancelled the call.")

    /// Refuses what is waiting, and ends the threads when they have finished what they are at. Not from a job.
    func stop() {
        monitor.lock()
        isStopping = true
        let rest = queue.removeAll()
        let running = threads
        threads = []
        monitor.signal()
        monitor.unlock()
        for job in rest { job.refused(Self.stopped) }
        for thread in running { thread.join() }
    }

    /// With the lock held.
    private func startThread() -> Bool {
        guard let thread = NamedThread.start("\(name)-\(threads.count)", { [self] in work() }) else { return false }
        threads.append(thread)
        return true
    }

    private func work() {
        while let job = next() {
            if job.cancellation?.isCancelled ?? false {
                job.refused(Self.cancelled)
            } else {
                job.body()
            }
            monitor.withLock { figures.running -= 1 }
        }
    }

    private func next() -> Job? {
        monitor.lock()
        defer { monitor.unlock() }
        while queue.isEmpty, !isStopping {
            idleCount += 1
            monitor.wait()
            idleCount -= 1
        }
        guard !isStopping, let job = queue.popFirst() else { return nil }
        figures.began(waited: MonotonicTime.now.nanoseconds - job.queuedAt.nanoseconds)
        figures.running += 1
        return job
    }
}

/// What a group of workers has done and has to do.
struct WorkerStatistics: Sendable, Equatable {
    /// Upper bounds of the waiting times that are told apart, in nanoseconds.
    static let waitBounds: [Int64] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000]

    /// Jobs that wait for a thread, and those that have one.
    var waiting = 0
    var running = 0
    /// Jobs that were not run because too many waited.
    var refused = 0
    /// Jobs that had their turn, by how long they had waited; the last place counts those beyond all bounds.
    var waits = [Int](repeating: 0, count: waitBounds.count + 1)
    var waitNanoseconds: Int64 = 0

    mutating func began(waited nanoseconds: Int64) {
        waits[Self.waitBounds.firstIndex { nanoseconds <= $0 } ?? Self.waitBounds.count] += 1
        waitNanoseconds += nanoseconds
    }
}
