/// A thread that calls a function periodically until it is stopped.
///
/// `@unchecked Sendable`: the monitor guards `isStopping`; `thread` is set before the object is shared.
package final class Periodic: @unchecked Sendable {
    private let monitor = Monitor()
    private var isStopping = false
    private var thread: NamedThread?

    /// - Parameters:
    ///   - name: the name of the thread.
    ///   - body: receives the number of earlier calls. Work that waits for a disk belongs on another thread.
    /// - Returns: nil when the system cannot start another thread.
    package init?(_ name: String, everyMilliseconds: Int, _ body: @escaping @Sendable (_ count: Int) -> Void) {
        thread = NamedThread.start(name) { [self] in
            var count = 0
            var next = MonotonicTime.now.advanced(milliseconds: everyMilliseconds)
            while sleep(until: next) {
                body(count)
                count += 1
                // Calls that were missed while the machine slept are skipped.
                next = max(next, MonotonicTime.now).advanced(milliseconds: everyMilliseconds)
            }
        }
        if thread == nil { return nil }
    }

    /// Waits for the end of a running call.
    package func stop() {
        let isFirst = monitor.withLock {
            defer { isStopping = true }
            monitor.signal()
            return !isStopping
        }
        if isFirst { thread?.join() }
    }

    /// False when the thread must end.
    private func sleep(until time: MonotonicTime) -> Bool {
        monitor.lock()
        defer { monitor.unlock() }
        while !isStopping {
            if MonotonicTime.now >= time { return true }
            monitor.wait(until: time)
        }
        return false
    }
}
