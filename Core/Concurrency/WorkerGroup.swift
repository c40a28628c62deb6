import HearthModel

/// Threads with one queue, which is served round-robin between accounts, and within an account between connections.
///
/// For every job exactly one closure is called, once: the job, or `refused` with the reason why it will never run.
///
/// A long job yields now and then (`WorkerSlice`): its thread waits for its next slice, and another thread runs the
/// waiting jobs. At most `threadsMax` jobs run at a time; more may have begun.
///
/// `@unchecked Sendable`: the monitor guards all mutable state.
package final class WorkerGroup: @unchecked Sendable {
    private struct Job {
        let requester: Requester
        let cancellation: Cancellation?
        let queuedAt: MonotonicTime
        let body: @Sendable (WorkerSlice) -> Void
        let refused: @Sendable (Status) -> Void
    }

    /// A job that has begun and has yielded.
    private final class Parked {
        var goesOn = false
    }

    private enum Entry {
        case job(Job)
        case parked(Parked)
    }

    private let monitor = Monitor()
    private var queue = FairQueue<Entry>()
    private var threads: [NamedThread] = []
    private var idleCount = 0
    /// Running jobs, without those that have yielded.
    private var activeCount = 0
    private var parkedCount = 0
    private var isStopping = false
    private var figures = WorkerStatistics()
    private let name: String
    private let threadsMax: Int
    private let parkedMax: Int
    private let jobsMax: Int
    private let sliceNanoseconds: Int64

    /// - Parameters:
    ///   - name: the name of the threads, to which a number is added; at most 12 bytes.
    ///   - threadsMax: jobs that run at a time.
    ///   - parkedMax: jobs that may have yielded at a time; each keeps a thread and the memory that it holds.
    ///   - jobsMax: jobs that wait.
    ///   - sliceNanoseconds: how long a job runs before it yields.
    package init(
        name: String, threadsMax: Int, parkedMax: Int = Limits.workerJobsParkedMax,
        jobsMax: Int = Limits.workerJobsWaitingMax, sliceNanoseconds: Int64 = Limits.workerSliceNanoseconds
    ) {
        self.name = name
        self.threadsMax = max(1, threadsMax)
        self.parkedMax = parkedMax
        self.jobsMax = max(1, jobsMax)
        self.sliceNanoseconds = sliceNanoseconds
    }

    /// Whether `stop` was called.
    var isStopped: Bool { monitor.withLock { isStopping } }

    var statistics: WorkerStatistics {
        monitor.withLock {
            var now = figures
            now.waiting = queue.count - parkedCount
            now.running = activeCount + parkedCount
            return now
        }
    }

    /// Runs `body` on one of the threads in the requester's next slice.
    /// - Parameters:
    ///   - cancellation: when it is set before the job begins, the job fails with `CANCELLED`.
    ///   - cost: the cost of the job, in a unit that all jobs of the group share.
    ///   - refused: called instead of `body`, from any thread. `RESOURCE_EXHAUSTED`: too many jobs wait, and most of
    ///     them are this requester's; `UNAVAILABLE`: the threads have ended.
    package func run(
        for requester: Requester, cancellation: Cancellation? = nil, cost: Int = 1,
        refused: @escaping @Sendable (Status) -> Void, _ body: @escaping @Sendable () -> Void
    ) {
        runInSlices(for: requester, cancellation: cancellation, cost: cost, refused: refused) { _ in body() }
    }

    /// The same for a job that yields to others.
    /// - Parameter body: receives the slice with which it yields; the slice is invalid after the call.
    package func runInSlices(
        for requester: Requester, cancellation: Cancellation? = nil, cost: Int = 1,
        refused: @escaping @Sendable (Status) -> Void, _ body: @escaping @Sendable (WorkerSlice) -> Void
    ) {
        let job = Job(
            requester: requester, cancellation: cancellation, queuedAt: .now, body: body, refused: refused)
        var victim: (job: Job, status: Status)?
        monitor.withLock {
            if isStopping || threads.isEmpty && !startThread() {
                victim = (job, Self.stopped)
                return
            }
            queue.append(.job(job), for: requester, cost: cost)
            if queue.count - parkedCount > jobsMax { victim = popVictim() }
            wakeThread()
        }
        if let victim { victim.job.refused(victim.status) }
    }

    /// The newest job of the requester that has queued most. With the lock held.
    private func popVictim() -> (job: Job, status: Status)? {
        while let last = queue.popLastOfLongest() {
            switch last {
            case .job(let job):
                figures.refused += 1
                return (job, Self.full)
            // It has begun, so it cannot be refused: it continues immediately.
            case .parked(let parked): goOn(parked)
            }
        }
        return nil
    }

    /// Lets a thread take the waiting jobs, if the limits allow it. With the lock held.
    private func wakeThread() {
        // A thread that was woken for the job before still counts as idle.
        if idleCount >= queue.count || threads.count - parkedCount >= threadsMax || !startThread() {
            monitor.signal()
        }
    }

    /// With the lock held.
    private func goOn(_ parked: Parked) {
        parked.goesOn = true
        activeCount += 1
        parkedCount -= 1
        monitor.signal()
    }

    /// Lets the jobs that are next continue, and waits for its own slice.
    func park(for requester: Requester) {
        monitor.lock()
        defer { monitor.unlock() }
        if queue.isEmpty || parkedCount >= parkedMax || isStopping { return }
        // A thread must exist that takes the waiting jobs.
        if idleCount == 0, !startThread() { return }
        let parked = Parked()
        queue.append(.parked(parked), for: requester)
        activeCount -= 1
        parkedCount += 1
        monitor.signal()
        while !parked.goesOn { monitor.wait() }
    }

    private static let full = Status(.resourceExhausted, "Too many of your requests wait for the server's workers.")
    private static let stopped = Status(.unavailable, "The server is shutting down.")
    private static let cancelled = Status(.cancelled, "The client has cancelled the call.")

    /// Refuses the waiting jobs, and ends the threads when their current jobs end. Must not be called from a job.
    package func stop() {
        monitor.lock()
        isStopping = true
        let rest = queue.removeAll()
        let running = threads
        threads = []
        var waiting: [Job] = []
        for entry in rest {
            switch entry {
            case .job(let job): waiting.append(job)
            case .parked(let parked): goOn(parked)
            }
        }
        monitor.signal()
        monitor.unlock()
        for job in waiting { job.refused(Self.stopped) }
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
                job.body(WorkerSlice(self, job.requester, sliceNanoseconds))
            }
            monitor.withLock { activeCount -= 1 }
        }
    }

    private func next() -> Job? {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            while !isStopping, queue.isEmpty || activeCount >= threadsMax {
                idleCount += 1
                monitor.wait()
                idleCount -= 1
            }
            guard !isStopping, let entry = queue.popFirst() else { return nil }
            switch entry {
            // The job's own thread continues instead of this one.
            case .parked(let parked): goOn(parked)
            case .job(let job):
                figures.began(waited: MonotonicTime.now.nanoseconds - job.queuedAt.nanoseconds)
                activeCount += 1
                return job
            }
        }
    }
}
