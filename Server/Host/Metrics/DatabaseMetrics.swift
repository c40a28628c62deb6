import HearthDocuments
import HearthModel

/// Metrics of Firestore's databases.
enum DatabaseMetrics {
    /// Databases that have their own label: see `LabelledStatistics`.
    static let labelsMax = 100

    static func write(_ databases: [Database], to string: inout MetricsWriter) {
        let statistics = LabelledStatistics(
            databases.sorted { $0.name.string < $1.name.string }.map { database in
                ([("project", database.name.project), ("database", database.name.database)], database.statistics)
            }, other: [("project", "other"), ("database", "other")])
        statistics.write(
            [
                ("hearth_commits_total", .counter, "Commits that the writer has handled.", { $0.commits }),
                ("hearth_commit_failures_total", .counter, "Commits that failed because of the disk.", { $0.failures }),
                ("hearth_queued_commits", .gauge, "Commits that wait for the writer.", { $0.queuedCommits }),
                ("hearth_queued_commit_bytes", .gauge, "Bytes of commits that wait.", { $0.queuedBytes }),
                ("hearth_open_transactions", .gauge, "Transactions that are open.", { $0.openTransactions }),
                ("hearth_database_bytes", .gauge, "Disk space of the data, including its log.", { $0.sizeBytes }),
            ], to: &string)
        string.family("hearth_commit_group_size", .histogram, "Commits that shared one durable transaction.")
        for (labels, statistics) in statistics.rows {
            let sizes = sums(statistics.map(\.groupSizes))
            string.histogram(
                "hearth_commit_group_size", labels, bounds: (0..<max(0, sizes.count - 1)).map { Double(1 << $0) },
                sizes, sum: Double(statistics.reduce(0) { $0 + $1.commits + $1.failures }))
        }
    }

    /// - Parameter readers: how many each change feed has; their number is bounded.
    static func write(readers: [DatabaseName: Int], to string: inout MetricsWriter) {
        string.family("hearth_changes_readers", .gauge, "Readers of the change feed.")
        for (name, count) in readers.sorted(by: { $0.key.string < $1.key.string }) {
            string.sample("hearth_changes_readers", [("project", name.project), ("database", name.database)], count)
        }
    }

    /// Bucket by bucket.
    private static func sums(_ histograms: [[Int]]) -> [Int] {
        var sums = [Int](repeating: 0, count: histograms.map(\.count).max() ?? 0)
        for histogram in histograms {
            for (index, count) in histogram.enumerated() { sums[index] += count }
        }
        return sums
    }
}
