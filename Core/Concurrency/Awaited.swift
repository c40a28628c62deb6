import HearthModel

/// A result that one thread waits for and another thread sets.
///
/// `@unchecked Sendable`: the monitor guards the result, which passes from one thread to the other.
package final class Awaited<Value>: @unchecked Sendable {
    private let monitor = Monitor()
    private var result: Result<Value, Status>?

    package init() {}

    /// Sets the result. Only the first call has an effect.
    package func set(_ result: Result<Value, Status>) {
        monitor.withLock {
            if self.result == nil { self.result = result }
            monitor.signal()
        }
    }

    /// Waits until there is a result. Must not run on an event loop.
    /// - Throws: the error with which the work failed.
    package func wait() throws(Status) -> Value {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let result { return try result.get() }
            monitor.wait()
        }
    }
}
