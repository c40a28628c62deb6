import HearthDocuments

/// Metrics of Firestore's databases.
enum DatabaseMetrics {
    /// Databases that have their own label; further ones are added up under one label, because a client can create any
    /// number, and each label costs memory in the monitoring system.
    static let labelsMax = 100

    static func write(_ databases: [Database], to string: inout MetricsWriter) {
        let sorted = databases.sorted { $0.name.string < $1.name.string }
        var rows = sorted.prefix(labelsMax).map { database in
            ([("project", database.name.project), ("database", database.name.database)], database.statistics)
        }
        if sorted.count > labelsMax {
            let rest = sorted.dropFirst(labelsMax).map(\.statistics)
            rows.append(([("project", "other"), ("database", "other")], rest.reduce(DatabaseStatistics(), sum)))
        }
        let figures: [(String, MetricsWriter.Kind, String, (DatabaseStatistics) -> Int?)] = [
            ("hearth_commits_total", .counter, "Commits that the writer has handled.", { $0.commits }),
            ("hearth_commit_failures_total", .counter, "Commits that failed because of the disk.", { $0.failures }),
            ("hearth_queued_commits", .gauge, "Commits that wait for the writer.", { $0.queuedCommits }),
            ("hearth_queued_commit_bytes", .gauge, "Bytes of commits that wait.", { $0.queuedBytes }),
            ("hearth_open_transactions", .gauge, "Transactions that are open.", { $0.openTransactions }),
            ("hearth_database_bytes", .gauge, "Disk space of the data, including its log.", { $0.sizeBytes }),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            for (labels, statistics) in rows {
                if let number = value(statistics) { string.sample(name, labels, number) }
            }
        }
        string.family("hearth_commit_group_size", .histogram, "Commits that shared one durable transaction.")
        for (labels, statistics) in rows {
            let bounds = (0..<max(0, statistics.groupSizes.count - 1)).map { Double(1 << $0) }
            string.histogram(
                "hearth_commit_group_size", labels, bounds: bounds, statistics.groupSizes,
                sum: Double(statistics.commits + statistics.failures))
        }
    }

    private static func sum(_ a: DatabaseStatistics, _ b: DatabaseStatistics) -> DatabaseStatistics {
        var sum = a
        sum.commits += b.commits
        sum.failures += b.failures
        sum.groups += b.groups
        sum.groupSizes = (0..<max(a.groupSizes.count, b.groupSizes.count)).map { index in
            (index < a.groupSizes.count ? a.groupSizes[index] : 0)
                + (index < b.groupSizes.count ? b.groupSizes[index] : 0)
        }
        sum.queuedCommits += b.queuedCommits
        sum.queuedBytes += b.queuedBytes
        sum.openTransactions += b.openTransactions
        if let bytes = b.sizeBytes { sum.sizeBytes = (sum.sizeBytes ?? 0) + bytes }
        return sum
    }
}
