/// A thread that takes all elements of its queue, in order, and processes them in batches.
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

    /// How long the queue must stay empty before the thread is idle.
    private static var idleMilliseconds: Int { 100 }

    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - idle: called once when no element has arrived for a tenth of a second.
    ///   - body: receives all queued elements, at least one.
    package init(
        name: String, idle: @escaping @Sendable () -> Void = {}, body: @escaping @Sendable ([Element]) -> Void
    ) {
        self.name = name
        self.body = body
        self.idle = idle
    }

    /// Adds an element; the first one starts the thread. False when the thread is stopping or cannot be started.
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

    /// Processes the queued elements, and ends the thread.
    /// - Returns: the elements that are not processed when the thread stops itself: it cannot wait for its own end.
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

    /// All queued elements; nil when the thread must end.
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

    /// Whether no element has arrived for a while.
    private func waitForIdleness() -> Bool {
        let deadline = MonotonicTime.now.advanced(milliseconds: Self.idleMilliseconds)
        while pending.isEmpty, !isStopping {
            if MonotonicTime.now >= deadline { return true }
            monitor.wait(until: deadline)
        }
        return false
    }
}
