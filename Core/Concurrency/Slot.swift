import HearthModel
import Synchronization

/// A value that one callback stores for a later one.
package final class Slot<Value: Sendable>: Sendable {
    private let state: Mutex<Value?>

    package init(_ value: Value? = nil) {
        state = Mutex(value)
    }

    package var value: Value? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
