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

    package init() {}
}
