import HearthModel

/// A result that one thread waits for and another one brings.
///
/// `@unchecked Sendable`: the monitor guards the result, which is handed from the one thread to the other.
package final class Awaited<Value>: @unchecked Sendable {
    private let monitor = Monitor()
    private var result: Result<Value, Status>?

    package init() {}

    /// Sets the result, once: a later one is dropped.
    package func set(_ result: Result<Value, Status>) {
        monitor.withLock {
            if self.result == nil { self.result = result }
            monitor.signal()
        }
    }

    /// Waits until there is a result. Not on an event loop.
    /// - Throws: what it failed with.
    package func wait() throws(Status) -> Value {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let result { return try result.get() }
            monitor.wait()
        }
    }
}
