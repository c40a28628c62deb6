import HearthConcurrency
import HearthModel
import Synchronization

/// A clock that moves only when a test moves it.
package final class StoppedClock: Clock {
    private struct State {
        var microseconds: Int64
        var nanoseconds: UInt64 = 1_000_000_000
    }

    private let state: Mutex<State>

    /// - Parameter microseconds: the time of day at the beginning.
    package init(microseconds: Int64 = 1_700_000_000_000_000) {
        state = Mutex(State(microseconds: microseconds))
    }

    package func now() -> Timestamp { Timestamp(microseconds: state.withLock { $0.microseconds }) }
    package func monotonicNanoseconds() -> UInt64 { state.withLock { $0.nanoseconds } }

    package func advance(seconds: Double) {
        state.withLock { state in
            state.microseconds += Int64(seconds * 1e6)
            state.nanoseconds += UInt64(seconds * 1e9)
        }
    }

    /// Sets the time of day back or forth, as an administrator might; the monotonic time is unchanged.
    package func jump(microseconds: Int64) {
        state.withLock { $0.microseconds += microseconds }
    }

    /// Sets the time of day; the monotonic time is unchanged.
    package func set(microseconds: Int64) {
        state.withLock { $0.microseconds = microseconds }
    }
}
