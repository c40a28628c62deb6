import HearthModel
import HearthTreeStorage

/// Metrics of the Realtime Database's namespaces.
enum RealtimeMetrics {
    static func write(_ databases: [TreeDatabase], to string: inout MetricsWriter) {
        let statistics = LabelledStatistics(
            databases.sorted { UTF8Order.compare($0.name, $1.name) < 0 }.map { database in
                ([("namespace", database.name)], (writer: database.statistics, sizeBytes: database.sizeBytes))
            }, other: [("namespace", "other")])
        statistics.write(
            [
                ("hearth_tree_commits_total", .counter, "Writes to a tree that were committed.", { $0.writer.commits }),
                ("hearth_tree_groups_total", .counter, "Groups that were made durable together.", { $0.writer.groups }),
                (
                    "hearth_tree_group_failures_total", .counter, "Groups that failed because of the disk.",
                    { $0.writer.failedGroups }
                ),
                ("hearth_tree_queued_writes", .gauge, "Writes that wait for the writer.", { $0.writer.queuedWrites }),
                ("hearth_tree_queued_bytes", .gauge, "Bytes of writes that wait.", { $0.writer.queuedBytes }),
                ("hearth_tree_bytes", .gauge, "Disk space of the tree, including its log.", { $0.sizeBytes }),
            ], to: &string)
    }
}
