/// Statistics of databases, a row for each. A client can create any number of databases, and each label costs memory in
/// the monitoring system: above `labelsMax` the further ones share a row.
struct LabelledStatistics<Statistics> {
    typealias Figure = (String, MetricsWriter.Kind, String, (Statistics) -> Int?)

    /// In the order of the databases; the shared row is last.
    let rows: [(labels: MetricsWriter.Labels, statistics: [Statistics])]

    /// - Parameter other: the labels of the shared row.
    init(_ databases: [(labels: MetricsWriter.Labels, statistics: Statistics)], other: MetricsWriter.Labels) {
        let own = databases.prefix(DatabaseMetrics.labelsMax).map { ($0.labels, [$0.statistics]) }
        let others = databases.dropFirst(own.count).map(\.statistics)
        rows = own + (others.isEmpty ? [] : [(other, others)])
    }

    /// Writes a family for each figure, with the sum of each row. A row of which a figure is not known has no sample.
    func write(_ figures: [Figure], to string: inout MetricsWriter) {
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            for (labels, statistics) in rows {
                let numbers = statistics.compactMap(value)
                if !numbers.isEmpty { string.sample(name, labels, numbers.reduce(0, +)) }
            }
        }
    }
}
