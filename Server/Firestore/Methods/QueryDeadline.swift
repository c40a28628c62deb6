import HearthConcurrency
import HearthModel

/// The time limit of a query.
struct QueryDeadline: Sendable {
    let clock = SystemClock()
    private let end: UInt64

    init() {
        end = clock.monotonicNanoseconds() + UInt64(Limits.queryTimeSecondsMax) * 1_000_000_000
    }

    func check() throws(Status) {
        if clock.monotonicNanoseconds() > end {
            throw Status(
                .deadlineExceeded,
                "The query timed out. Please try either limiting the entities scanned, or run with an updated index "
                    + "configuration.")
        }
    }
}
