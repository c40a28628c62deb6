/// The counters of a group of workers.
package struct WorkerStatistics: Sendable, Equatable {
    /// Upper bounds of the histogram of waiting times, in nanoseconds.
    package static let waitBounds: [Int64] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000]

    /// Jobs that wait for a thread, and jobs that run.
    package var waiting = 0
    package var running = 0
    /// Jobs that were not run because too many waited.
    package var refused = 0
    /// Started jobs, by their waiting time; the last element counts those beyond all bounds.
    package var waits = [Int](repeating: 0, count: waitBounds.count + 1)
    package var waitNanoseconds: Int64 = 0

    mutating func began(waited nanoseconds: Int64) {
        waits[Self.waitBounds.firstIndex { nanoseconds <= $0 } ?? Self.waitBounds.count] += 1
        waitNanoseconds += nanoseconds
    }
}
