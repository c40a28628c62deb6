import Dispatch
import Synchronization

/// Waits for a value from another thread.
///
/// Unlike `Awaited` it fails a test whose value is given twice, or never.
package final class Promise<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    // Not a `Monitor`: the thread that gives the value may run in an `Interleaving`, the one that waits outside of it.
    private let given = DispatchSemaphore(value: 0)

    package init() {}

    package func give(_ value: Value) {
        self.value.withLock { present in
            precondition(present == nil, "a promise is kept once")
            present = value
        }
        given.signal()
    }

    package var isGiven: Bool { value.withLock { $0 != nil } }

    /// - Parameter seconds: after which the test fails, so that a deadlock can't hang the run.
    @discardableResult
    package func wait(seconds: Int = Patience.seconds) -> Value {
        guard given.wait(timeout: .now() + .seconds(seconds)) == .success else {
            fatalError("waited \(seconds) s in vain")
        }
        given.signal()
        return value.withLock { $0! }
    }
}
