import HearthConcurrency

/// Opened once, awaited by any thread.
package final class Gate: @unchecked Sendable {
    private let monitor = Monitor()
    private var isOpen = false

    package init() {}

    package func open() {
        monitor.withLock {
            isOpen = true
            monitor.signal()
        }
    }

    package func wait() {
        monitor.lock()
        while !isOpen { monitor.wait() }
        monitor.unlock()
    }
}
