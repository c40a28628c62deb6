import HearthModel
import Synchronization

/// For how long history is kept.
extension Database {
    /// Sets for how long the change feed can be read. Where that is longer than `Limits.retentionSeconds`, old versions are kept
    /// and readable for as long.
    package func setChangesRetention(seconds: Int) {
        changesSeconds.store(seconds, ordering: .relaxed)
        horizon.keep(seconds: retentionSeconds + Self.graceSeconds)
        changesHorizon.keep(seconds: seconds)
    }

    /// Seconds for which old versions are readable.
    package var retentionSeconds: Int { max(Limits.retentionSeconds, changesSeconds.load(ordering: .relaxed)) }

    /// Readers of the change feed that need commits before this version have fallen behind its retention. Commits of this run
    /// are judged by the time that has passed since them, not by their versions: see `HistoryHorizon`.
    package var oldestChange: Int64 { changesHorizon.version(newest: commitClock.lastCommit) }

    /// The greatest time that is not in the future, in microseconds since 1970.
    package var latestMicroseconds: Int64 { commitClock.latest }
}
