internal import HearthModel
internal import HearthDocuments
internal import HearthSync

/// Aggregations over documents on this device, with the server's arithmetic.
enum LocalAggregation {
    /// The results by alias. Only documents that have all aggregated fields count, also for a count next to a sum.
    static func values(of fields: [AggregateField], over documents: DocumentSet) -> [String: Value] {
        let paths = fields.compactMap(\.path)
        var sums = fields.map { _ in NumberSum() }
        var count = 0
        for document in documents where paths.allSatisfy({ document.fields[path: $0] != nil }) {
            count += 1
            for (index, field) in fields.enumerated() {
                if let path = field.path, let value = document.fields[path: path] { sums[index].add(value) }
            }
        }
        var values: [String: Value] = [:]
        for (field, sum) in zip(fields, sums) {
            values[field.alias] =
                switch field.operator {
                case .count: .integer(Int64(count))
                case .sum: sum.total
                case .average: sum.average
                }
        }
        return values
    }
}
