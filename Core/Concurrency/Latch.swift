/// Opens once; threads wait for it.
///
/// `@unchecked Sendable`: the monitor guards `isOpen`.
package final class Latch: @unchecked Sendable {
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
        monitor.withLock {
            while !isOpen { monitor.wait() }
        }
    }

    /// Waits until the latch is open or `deadline` has passed.
    /// - Returns: whether it is open.
    @discardableResult
    package func wait(until deadline: MonotonicTime) -> Bool {
        monitor.withLock {
            while !isOpen {
                if MonotonicTime.now >= deadline { return false }
                monitor.wait(until: deadline)
            }
            return true
        }
    }
}
