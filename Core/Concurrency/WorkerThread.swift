/// A thread that takes everything that was put into its queue, in order, and works on it in batches.
///
/// The monitor guards `pending`, `thread` and `isStopping`; everything else belongs to the thread.
package final class WorkerThread<Element: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private var pending: [Element] = []
    private var isStopping = false
    private var thread: NamedThread?
    private let name: String
    private let body: @Sendable ([Element]) -> Void
    private let idle: @Sendable () -> Void

    /// How long nothing has to come before the thread is idle.
    private static var idleMilliseconds: Int { 100 }

    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - idle: called once when nothing has come for a tenth of a second.
    ///   - body: gets all that has gathered, at least one element.
    package init(
        name: String, idle: @escaping @Sendable () -> Void = {}, body: @escaping @Sendable ([Element]) -> Void
    ) {
        self.name = name
        self.body = body
        self.idle = idle
    }

    /// Adds an element; the thread is started with the first. False when the thread is stopping or can't be started.
    @discardableResult
    package func push(_ element: Element) -> Bool {
        monitor.withLock {
            if isStopping { return false }
            if thread == nil {
                thread = NamedThread.start(name) { [self] in run() }
                if thread == nil { return false }
            }
            pending.append(element)
            monitor.signal()
            return true
        }
    }

    package var count: Int { monitor.withLock { pending.count } }

    /// Works off what is waiting, and ends the thread.
    /// - Returns: what is not worked off, when the thread stops itself: it can't wait for its own end.
    @discardableResult
    package func stop() -> [Element] {
        monitor.lock()
        let running = isStopping ? nil : thread
        isStopping = true
        var rest: [Element] = []
        if let thread, thread.isCurrent {
            rest = pending
            pending = []
        }
        monitor.signal()
        monitor.unlock()
        if let running { if running.isCurrent { running.detach() } else { running.join() } }
        return rest
    }

    private func run() {
        var isIdleDue = true
        while let batch = next(&isIdleDue) {
            isIdleDue = true
            body(batch)
        }
    }

    /// Everything that has gathered; nil when the thread has to end.
    private func next(_ isIdleDue: inout Bool) -> [Element]? {
        monitor.lock()
        defer { monitor.unlock() }
        while pending.isEmpty, !isStopping {
            if !isIdleDue {
                monitor.wait()
            } else if waitForIdleness() {
                isIdleDue = false
                monitor.unlock()
                idle()
                monitor.lock()
            }
        }
        defer { pending = [] }
        return pending.isEmpty ? nil : pending
    }

    /// Whether nothing has come for a while.
    private func waitForIdleness() -> Bool {
        let deadline = MonotonicTime.now.advanced(milliseconds: Self.idleMilliseconds)
        while pending.isEmpty, !isStopping {
            if MonotonicTime.now >= deadline { return true }
            monitor.wait(until: deadline)
        }
        return false
    }
}
