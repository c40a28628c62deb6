/// Counters of a store since it was opened, and its present state.
package struct StoreStatistics: Sendable {
    /// Snapshots that are open, by `SnapshotUse`.
    package var shortSnapshots = 0
    package var longSnapshots = 0
    package var revokedSnapshots = 0
    /// Bytes of the log that hold commits.
    package var logBytes = 0
    package var checkpoints = 0
    package var failedCheckpoints = 0
    /// Checkpoints that were started beside the writer on a log that was fully copied: must stay 0, see docs/internals/sqlite.md.
    package var unsafeCheckpoints = 0
    /// Transactions that failed in the engine.
    package var failedCommits = 0

    /// Bytes of changes that are in memory, and in the log, but not in the database's file.
    package var tableBytes = 0
    /// Tables that were transferred to the database's file.
    package var applications = 0
    /// Writes that were delayed because the transfer is slower than they are, and those that had to wait for its end.
    package var delayedWrites = 0
    package var stalledWrites = 0

    package init() {}
}
