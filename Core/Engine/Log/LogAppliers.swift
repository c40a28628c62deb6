import HearthConcurrency

/// A few threads that apply the tables of many stores to their bases, a slice at a time.
///
/// A thread ends when there is nothing to do; the last one stays while something is to be done later.
///
/// `@unchecked Sendable`: the monitor guards everything.
package final class LogAppliers: @unchecked Sendable {
    package static let process = LogAppliers(threads: 2)

    private let monitor = Monitor()
    private let threadsMax: Int
    private var ready = Queue<Job>()
    private var timers = TimerHeap<Timer>()
    private var threads = 0
    private var waiting = 0

    private struct Job: Sendable {
        weak var user: (any LogApplierUser)?
    }

    private final class Timer: HeapTimer {
        let deadline: UInt64
        var heapIndex = -1
        weak var user: (any LogApplierUser)?

        init(_ deadline: UInt64, _ user: any LogApplierUser) {
            self.deadline = deadline
            self.user = user
        }
    }

    /// - Parameter threads: 0 in tests that call `runOne`.
    package init(threads: Int) { threadsMax = threads }

    /// Calls the user's `work` soon.
    func add(_ user: any LogApplierUser) {
        monitor.withLock {
            ready.append(Job(user: user))
            wake()
        }
    }

    /// Calls the user's `work` later.
    func add(_ user: any LogApplierUser, afterMilliseconds milliseconds: Int) {
        let deadline = MonotonicTime.now.advanced(milliseconds: milliseconds).nanoseconds
        monitor.withLock {
            timers.insert(Timer(UInt64(deadline), user))
            wake()
        }
    }

    /// Whether a user waits for a thread.
    var hasWaiting: Bool {
        monitor.withLock {
            !ready.isEmpty || timers.earliestDeadline.map { $0 <= UInt64(MonotonicTime.now.nanoseconds) } ?? false
        }
    }

    private func wake() {
        if waiting > 0 { monitor.signal() }
        if waiting > 0 && ready.count <= 1 || threads >= threadsMax { return }
        // When none can be started, the next request tries again.
        guard let thread = NamedThread.start("hearth-applier", { [self] in run() }) else { return }
        thread.detach()
        threads += 1
    }

    private func run() {
        while let job = next() { run(job) }
    }

    private func run(_ job: Job) { job.user?.work() }

    /// Waits for the next job; nil when the thread must end.
    private func next() -> Job? {
        monitor.withLock {
            while true {
                if let job = takeReady() { return job }
                guard let deadline = timers.earliestDeadline, waiting == 0 else {
                    threads -= 1
                    return nil
                }
                waiting += 1
                monitor.wait(until: MonotonicTime(nanoseconds: Int64(deadline)))
                waiting -= 1
            }
        }
    }

    private func takeReady() -> Job? {
        while let timer = timers.popDue(UInt64(MonotonicTime.now.nanoseconds)) { ready.append(Job(user: timer.user)) }
        return ready.popFirst()
    }

    /// Does one thing that is due on the caller's thread, for tests; false when there is none.
    @discardableResult
    package func runOne() -> Bool {
        guard let job = monitor.withLock({ takeReady() }) else { return false }
        run(job)
        return true
    }

    /// Does everything that is due.
    package func runAll() { while runOne() {} }
}

/// A store that appliers work for.
protocol LogApplierUser: AnyObject, Sendable {
    /// Does a piece of work, on a thread of the appliers.
    func work()
}
