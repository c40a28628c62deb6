import HearthConcurrency

/// Threads that open, close and delete databases. Jobs start in order; some may wait for a disk.
///
/// They are not the workers of requests: an opening would wait behind long queries, and a query that waits for an
/// opening would occupy the thread that the opening needs.
///
/// `@unchecked Sendable`: the monitor guards all state.
package final class LifecycleThreads: @unchecked Sendable {
    private let monitor = Monitor()
    private var jobs = Queue<@Sendable () -> Void>()
    private var threads: [NamedThread] = []
    private var idleCount = 0
    private var isStopping = false
    private let threadsMax: Int
    private let name: String
    private let runner: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    package init(threadsMax: Int = 4, name: String = "hearth-open") {
        self.threadsMax = threadsMax
        self.name = name
        runner = nil
    }

    /// For tests: `runner` runs the jobs, at any time and in any order.
    package init(runner: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        threadsMax = 0
        name = ""
        self.runner = runner
    }

    package func run(_ job: @escaping @Sendable () -> Void) {
        if let runner { return runner(job) }
        let isRefused = monitor.withLock {
            jobs.append(job)
            if idleCount >= jobs.count || threads.count >= threadsMax {
                monitor.signal()
                return false
            }
            if let thread = NamedThread.start(name, { [self] in work() }) {
                threads.append(thread)
            } else if threads.isEmpty {
                // The system can start no thread: run the job late on this thread instead of never.
                _ = jobs.popFirst()
                return true
            }
            return false
        }
        if isRefused { job() }
    }

    /// Runs the waiting jobs, and ends the threads. No job may be added afterwards.
    package func stop() {
        let running = monitor.withLock {
            isStopping = true
            monitor.signal()
            return threads
        }
        for thread in running { thread.join() }
    }

    private func work() {
        while let job = next() { job() }
    }

    private func next() -> (@Sendable () -> Void)? {
        monitor.lock()
        defer { monitor.unlock() }
        while jobs.isEmpty {
            if isStopping { return nil }
            idleCount += 1
            monitor.wait()
            idleCount -= 1
        }
        return jobs.popFirst()
    }
}
