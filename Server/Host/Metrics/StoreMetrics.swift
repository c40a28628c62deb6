import HearthDocuments
import HearthModel
import HearthEngine
import HearthTreeStorage

/// Metrics of the files of both products, for all databases together: for alerts, which need no names.
enum StoreMetrics {
    static func write(
        _ databases: [Database], _ trees: [TreeDatabase], failing: Int, to string: inout MetricsWriter
    ) {
        let stores = databases.map { $0.store.statistics } + trees.map { $0.statistics.store }
        func sum(_ figure: (StoreStatistics) -> Int) -> Int { stores.reduce(0) { $0 + figure($1) } }
        string.family("hearth_snapshots_open", .gauge, "Snapshots that are open, by their lifetime.")
        string.sample("hearth_snapshots_open", [("use", "short")], sum(\.shortSnapshots))
        string.sample("hearth_snapshots_open", [("use", "long")], sum(\.longSnapshots))
        let figures: [(String, MetricsWriter.Kind, String, Int)] = [
            (
                "hearth_snapshots_revoked", .gauge,
                "Snapshots of open databases that were ended because they held too much of SQLite's log.",
                sum(\.revokedSnapshots)
            ),
            ("hearth_log_bytes", .gauge, "Bytes of the logs, and of SQLite's, that hold commits.", sum(\.logBytes)),
            (
                "hearth_table_bytes", .gauge, "Bytes of changes in memory that the databases' files do not have yet.",
                sum(\.tableBytes)
            ),
            (
                "hearth_tables_applied", .gauge, "Tables of open databases that were written to their files.",
                sum(\.applications)
            ),
            (
                "hearth_writes_delayed", .gauge,
                "Groups of commits of open databases that were delayed because files follow their logs slowly.",
                sum(\.delayedWrites)
            ),
            (
                "hearth_writes_stalled", .gauge,
                "Groups of commits of open databases that waited until a file had followed its log.",
                sum(\.stalledWrites)
            ),
            ("hearth_checkpoints", .gauge, "Checkpoints of open databases.", sum(\.checkpoints)),
            (
                "hearth_checkpoints_failed", .gauge, "Failed checkpoints of open databases.",
                sum(\.failedCheckpoints)
            ),
            (
                "hearth_checkpoints_unsafe", .gauge,
                "Checkpoints begun during a write on a fully copied log: 0, otherwise a bug in Hearth.",
                sum(\.unsafeCheckpoints)
            ),
            (
                "hearth_store_commits_failed", .gauge,
                "Transactions of open databases that failed because of the disk.", sum(\.failedCommits)
            ),
            (
                "hearth_databases_failing", .gauge,
                "Databases whose commits fail at present, or that cannot be opened.", failing
            ),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            string.sample(name, [], value)
        }
    }
}
