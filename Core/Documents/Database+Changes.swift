import HearthModel
import Synchronization

/// For how long history is kept.
extension Database {
    /// Sets for how long the change feed can be read. Where that is longer than `Limits.retentionSeconds`, old versions are kept
    /// and readable for as long.
    package func setChangesRetention(seconds: Int) {
        changesSeconds.store(seconds, ordering: .relaxed)
        keepHistory()
        changesHorizon.keep(seconds: seconds)
    }

    /// Has history kept for as long as the settings want it now. What was deleted before does not come back.
    func keepHistory() { horizon.keep(seconds: retentionSeconds + Self.graceSeconds) }

    /// Seconds for which old versions are kept.
    private var retentionSeconds: Int {
        recoverySince.load(ordering: .relaxed) == 0
            ? everyVersionSeconds : max(everyVersionSeconds, Limits.recoverySeconds)
    }

    /// Seconds for which a read may have any time; beyond them it has the whole minutes of point-in-time recovery.
    private var everyVersionSeconds: Int { max(Limits.retentionSeconds, changesSeconds.load(ordering: .relaxed)) }

    /// The earliest version that is kept for reads at any time.
    func earliestOfEveryVersion(now: Int64) -> Int64 { now - Int64(everyVersionSeconds) * 1_000_000 }

    /// Whether a time is one of those that point-in-time recovery adds: a whole minute.
    func isRecoverable(_ time: Timestamp, now: Int64) -> Bool {
        let since = recoverySince.load(ordering: .relaxed)
        return since > 0 && time.nanoseconds == 0 && time.seconds % 60 == 0
            && time.microseconds >= max(since, now - Int64(Limits.recoverySeconds) * 1_000_000)
    }

    /// Which old versions can be read now.
    /// - Throws: UNAVAILABLE when the store can't be read.
    package func versionRetention() throws(Status) -> VersionRetention {
        let now = clock.now().microseconds
        let since = recoverySince.load(ordering: .relaxed)
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let forgotten = try Feed.forgottenVersion(in: snapshot)
        var earliest = max(forgotten, earliestOfEveryVersion(now: now))
        if since > 0 {
            let recoverable = max(forgotten, since, now - Int64(Limits.recoverySeconds) * 1_000_000)
            earliest = min(earliest, PointInTimeRecovery.roundedUp(recoverable))
        }
        return VersionRetention(
            seconds: retentionSeconds, earliest: earliest,
            beginning: try forgotten > 0 ? forgotten : Feed.firstVersion(in: snapshot),
            isPointInTimeRecovery: since > 0)
    }

    /// Readers of the change feed that need commits before this version have fallen behind its retention. Commits of this run
    /// are judged by the time that has passed since them, not by their versions: see `HistoryHorizon`.
    package var oldestChange: Int64 { changesHorizon.version(newest: commitClock.lastCommit) }

    /// The greatest time that is not in the future, in microseconds since 1970.
    package var latestMicroseconds: Int64 { commitClock.latest }
}
