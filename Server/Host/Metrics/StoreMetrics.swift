import HearthDocuments
import HearthModel
import HearthEngine
import HearthTreeStorage

/// What `/metrics` tells of the files beneath both products, all databases together: for alerts, which need no names.
enum StoreMetrics {
    static func write(
        _ databases: [Database], _ trees: [TreeDatabase], failing: Int, to string: inout MetricsWriter
    ) {
        var sum = StoreStatistics()
        for database in databases { sum = sum + database.store.statistics }
        for tree in trees { sum = sum + tree.statistics.store }
        string.family("hearth_snapshots_open", .gauge, "Snapshots that are open, by how long they are kept.")
        string.sample("hearth_snapshots_open", [("use", "short")], sum.shortSnapshots)
        string.sample("hearth_snapshots_open", [("use", "long")], sum.longSnapshots)
        let figures: [(String, MetricsWriter.Kind, String, Int)] = [
            (
                "hearth_snapshots_revoked", .gauge,
                "Snapshots of databases that are open now that were taken away because they kept too much of the log.",
                sum.revokedSnapshots
            ),
            ("hearth_log_bytes", .gauge, "Bytes of write-ahead logs that hold commits.", sum.logBytes),
            ("hearth_checkpoints", .gauge, "Checkpoints of databases that are open now.", sum.checkpoints),
            (
                "hearth_checkpoints_failed", .gauge, "Checkpoints of databases that are open now that failed.",
                sum.failedCheckpoints
            ),
            (
                "hearth_checkpoints_unsafe", .gauge,
                "Checkpoints begun beside the writer on a fully copied log: 0, else an error of Hearth.",
                sum.unsafeCheckpoints
            ),
            (
                "hearth_store_commits_failed", .gauge,
                "Transactions of databases that are open now that the disk refused.", sum.failedCommits
            ),
            ("hearth_databases_failing", .gauge, "Databases whose commits fail at present.", failing),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            string.sample(name, [], value)
        }
    }
}
