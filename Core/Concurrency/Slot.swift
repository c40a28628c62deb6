import HearthModel
import Synchronization

/// A value that one callback stores for a later one.
@usableFromInline package final class Slot<Value: Sendable>: Sendable {
    @usableFromInline let state: Mutex<Value?>

    @inlinable package init(_ value: Value? = nil) {
        state = Mutex(value)
    }

    package var value: Value? {
        @inlinable get { state.withLock { $0 } }
        @inlinable set { state.withLock { $0 = newValue } }
    }
}
