/// A thread that does something again and again until it is stopped.
///
/// `@unchecked Sendable`: the monitor guards `isStopping`; `thread` is set before anybody else has the object.
package final class Periodic: @unchecked Sendable {
    private let monitor = Monitor()
    private var isStopping = false
    private var thread: NamedThread?

    /// - Parameters:
    ///   - name: of the thread.
    ///   - body: given how often it was called before. What waits for a disk belongs to another thread.
    /// - Returns: nil when the system has no room for another thread.
    package init?(_ name: String, everyMilliseconds: Int, _ body: @escaping @Sendable (_ count: Int) -> Void) {
        thread = NamedThread.start(name) { [self] in
            var count = 0
            var next = MonotonicTime.now.advanced(milliseconds: everyMilliseconds)
            while sleep(until: next) {
                body(count)
                count += 1
                // What was missed while the machine slept is not made up for.
                next = max(next, MonotonicTime.now).advanced(milliseconds: everyMilliseconds)
            }
        }
        if thread == nil { return nil }
    }

    /// Waits for the end of a call that is under way.
    package func stop() {
        let isFirst = monitor.withLock {
            defer { isStopping = true }
            monitor.signal()
            return !isStopping
        }
        if isFirst { thread?.join() }
    }

    /// False when the thread has to end.
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
