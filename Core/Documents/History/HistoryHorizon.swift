import HearthConcurrency
import HearthModel
import Synchronization

/// The version that was the newest so many seconds ago: up to it history may be deleted, or events are too old.
///
/// Versions are times, but the clock may be wrong, or may have been wrong when they were assigned. So the age of
/// history is measured by the elapsed time since the database was opened, in which the newest versions are sampled.
/// Older history is judged by the clock at the time of opening, or by the time that has surely come.
package final class HistoryHorizon: Sendable {
    private struct Sample {
        var version: Int64
        var nanoseconds: UInt64
    }

    private let clock: any Clock
    private let openedMicroseconds: Int64
    private let openedNanoseconds: UInt64
    /// In the order of time; at most one is old enough to delete.
    private let samples = Mutex<[Sample]>([])

    private let kept: Atomic<Int>
    private var keptSeconds: Int { kept.load(ordering: .relaxed) }
    /// Seconds between two samples.
    private var sampleSeconds: UInt64 { UInt64(max(sampleSecondsMin, keptSeconds / Self.samplesMax)) }
    private let sampleSecondsMin: Int
    private let elapsed: ElapsedTime?

    private static let samplesMax = 480

    package convenience init(clock: any Clock, keptSeconds: Int) {
        self.init(clock: clock, keptSeconds: keptSeconds, elapsed: nil, sampleSecondsMin: 30)
    }

    /// - Parameters:
    ///   - elapsed: judges what is older than the opening.
    ///   - sampleSecondsMin: by how much history may be too old, if it is asked for as often.
    init(clock: any Clock, keptSeconds: Int, elapsed: ElapsedTime?, sampleSecondsMin: Int) {
        self.clock = clock
        self.elapsed = elapsed
        self.sampleSecondsMin = sampleSecondsMin
        kept = Atomic(keptSeconds)
        openedMicroseconds = clock.now().microseconds
        openedNanoseconds = clock.monotonicNanoseconds()
    }

    /// Changes for how long history is kept; what was given up before does not come back.
    package func keep(seconds: Int) { kept.store(seconds, ordering: .relaxed) }

    /// Nothing before this version is kept.
    /// - Parameters:
    ///   - newest: the newest commit, and its monotonic time.
    ///   - other: judges what is older than the opening, if it wasn't known then.
    package func version(
        newest: (version: Int64, nanoseconds: UInt64), elapsed other: ElapsedTime? = nil
    ) -> Int64 {
        let now = clock.monotonicNanoseconds()
        func isOld(_ nanoseconds: UInt64) -> Bool {
            now >= nanoseconds + UInt64(keptSeconds) * 1_000_000_000
        }
        if isOld(newest.nanoseconds) { return newest.version + 1 }
        let passed = Int64((now - min(now, openedNanoseconds)) / 1000)
        let time = (elapsed ?? other)?.microseconds ?? min(openedMicroseconds + passed, newest.version)
        let byClock = time - Int64(keptSeconds) * 1_000_000
        let noted = samples.withLock { samples -> Int64 in
            if samples.last.map({ now >= $0.nanoseconds + sampleSeconds * 1_000_000_000 }) ?? true {
                samples.append(Sample(version: newest.version, nanoseconds: now))
            }
            while samples.count > 1, isOld(samples[1].nanoseconds) { samples.removeFirst() }
            guard let first = samples.first, isOld(first.nanoseconds) else { return 0 }
            return first.version + 1
        }
        return max(byClock, noted)
    }
}
