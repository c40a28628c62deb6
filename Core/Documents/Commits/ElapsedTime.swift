import HearthConcurrency
import HearthModel

/// A time that has surely come, for the deletion of what is so many days old: a clock that is wrong may delay a deletion,
/// and must not cause one.
///
/// It follows the time that passes while the database is open, not the clock's steps. In the first hour the clock at the
/// opening is not believed, for a machine may be started with a wrong one, which is then corrected: until then the time
/// is that of the newest commit that was found, and what has passed since.
package struct ElapsedTime: Sendable {
    /// Seconds after which the clock at the opening is believed, if it still shows the same.
    static let doubtSeconds: UInt64 = 3600

    private let clock: any Clock
    private let openedMicroseconds: Int64
    private let openedNanoseconds: UInt64
    private let newestAtOpening: Int64

    /// - Parameter newestVersion: the newest commit that was found at the opening, in microseconds since 1970.
    package init(clock: any Clock, newestVersion: Int64) {
        self.clock = clock
        newestAtOpening = newestVersion
        openedMicroseconds = clock.now().microseconds
        openedNanoseconds = clock.monotonicNanoseconds()
    }

    /// In microseconds since 1970.
    package var microseconds: Int64 {
        let passed = clock.monotonicNanoseconds() - openedNanoseconds
        let passedMicroseconds = Int64(passed / 1000)
        let byClock = min(openedMicroseconds + passedMicroseconds, clock.now().microseconds)
        return passed / 1_000_000_000 < Self.doubtSeconds ? min(byClock, newestAtOpening + passedMicroseconds) : byClock
    }
}
