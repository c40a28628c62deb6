import HearthModel
import HearthTreeStorage

/// Metrics of the Realtime Database's namespaces.
enum RealtimeMetrics {
    private struct Row {
        var labels: MetricsWriter.Labels
        var statistics: TreeStatistics
        var sizeBytes: Int?
    }

    static func write(_ databases: [TreeDatabase], to string: inout MetricsWriter) {
        let sorted = databases.sorted { UTF8Order.compare($0.name, $1.name) < 0 }
        var rows = sorted.prefix(DatabaseMetrics.labelsMax).map { database in
            Row(
                labels: [("namespace", database.name)], statistics: database.statistics, sizeBytes: database.sizeBytes)
        }
        // Clients can create any number of namespaces, and each label costs memory in the monitoring system.
        if sorted.count > rows.count { rows.append(sum(sorted.dropFirst(rows.count))) }
        let figures: [(String, MetricsWriter.Kind, String, (Row) -> Int?)] = [
            ("hearth_tree_commits_total", .counter, "Writes to a tree that were committed.", { $0.statistics.commits }),
            ("hearth_tree_groups_total", .counter, "Groups that were made durable together.", { $0.statistics.groups }),
            (
                "hearth_tree_group_failures_total", .counter, "Groups that failed because of the disk.",
                { $0.statistics.failedGroups }
            ),
            ("hearth_tree_queued_writes", .gauge, "Writes that wait for the writer.", { $0.statistics.queuedWrites }),
            ("hearth_tree_queued_bytes", .gauge, "Bytes of writes that wait.", { $0.statistics.queuedBytes }),
            ("hearth_tree_bytes", .gauge, "Disk space of the tree, including its log.", { $0.sizeBytes }),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            for row in rows {
                if let number = value(row) { string.sample(name, row.labels, number) }
            }
        }
    }

    private static func sum(_ databases: some Sequence<TreeDatabase>) -> Row {
        var row = Row(labels: [("namespace", "other")], statistics: TreeStatistics())
        for database in databases {
            let statistics = database.statistics
            row.statistics.commits += statistics.commits
            row.statistics.groups += statistics.groups
            row.statistics.failedGroups += statistics.failedGroups
            row.statistics.queuedWrites += statistics.queuedWrites
            row.statistics.queuedBytes += statistics.queuedBytes
            if let bytes = database.sizeBytes { row.sizeBytes = (row.sizeBytes ?? 0) + bytes }
        }
        return row
    }
}
