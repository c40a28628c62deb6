import Glibc

/// A moment of a clock that never steps.
package struct MonotonicTime: Comparable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static var now: MonotonicTime {
        #if DEBUG
        if let interleaving = Interleaving.current { return MonotonicTime(nanoseconds: interleaving.now) }
        #endif
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    package func advanced(milliseconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: nanoseconds + Int64(milliseconds) * 1_000_000)
    }

    package static func < (lhs: MonotonicTime, rhs: MonotonicTime) -> Bool { lhs.nanoseconds < rhs.nanoseconds }
}
