import Glibc
import HearthModel

/// The source of time: the system, or a clock that a test moves.
@usableFromInline package protocol Clock: Sendable {
    /// The time of day.
    func now() -> Timestamp
    /// Nanoseconds since an arbitrary start; never decreases.
    func monotonicNanoseconds() -> UInt64
}
