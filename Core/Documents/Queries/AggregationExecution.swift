import HearthModel
import HearthWire

/// Counts, sums and averages over the results of a query.
package final class AggregationExecution {
    private let execution: QueryExecution
    private let aggregations: [Aggregation]
    private let fields: [FieldPath?]

    /// - Throws: INVALID_ARGUMENT for a query or an aggregation that is not allowed; FAILED_PRECONDITION for a missing
    ///   index when `requireIndexes`.
    package init(
        _ query: Query, _ aggregations: [Aggregation], view: ReadView, meter: WorkMeter = WorkMeter(),
        requireIndexes: Bool = false
    ) throws(Status) {
        self.aggregations = aggregations
        fields = aggregations.map { Self.field(of: $0) }
        execution = try QueryExecution(
            try Self.normalize(query, aggregations), view: view, meter: meter, requireIndexes: requireIndexes,
            keysOnly: query.findNearest == nil && fields.allSatisfy { $0 == nil })
    }

    /// The base query with the aggregated fields in its order: only documents that have all of them count.
    /// - Throws: INVALID_ARGUMENT when the query's order or projection excludes them.
    package static func normalize(_ query: Query, _ aggregations: [Aggregation]) throws(Status) -> NormalizedQuery {
        let fields = aggregations.compactMap { Self.field(of: $0) }
        if let projection = query.projection, let field = fields.first {
            if projection.isEmpty {
                throw .invalidArgument(
                    "Aggregation over non-key properties is not supported for base query that only returns keys.")
            }
            if !projection.contains(field) {
                throw .invalidArgument(
                    "The aggregation property \(field) is not present in the base query's property mask.")
            }
            throw .invalidArgument("Cannot apply property masks when aggregation fields are present.")
        }
        let normalized = try NormalizedQuery(query, existing: fields)
        if query.orders.last?.field.isDocumentName ?? false || query.filter.map(Self.filtersNames) ?? false {
            let ordered = NormalizedQuery.inequalityFields(query.filter).union(query.orders.map(\.field))
            var missing: [FieldPath] = []
            for field in fields where !ordered.contains(field) && !missing.contains(field) { missing.append(field) }
            if !missing.isEmpty {
                throw .invalidArgument(
                    "This query requires an index that has fields [\(missing.map(\.string).joined(separator: ", "))] after "
                        + "__name__ and Firestore does not currently support such an index. Please try the query again "
                        + "with additional ordering on those fields.")
            }
        }
        return normalized
    }

    /// Whether a filter on `__name__` puts the name first in the order.
    private static func filtersNames(_ filter: Filter) -> Bool {
        switch filter {
        case .and(let filters), .or(let filters): filters.contains(where: filtersNames)
        case .field(let path, _, _), .unary(let path, _): path.isDocumentName
        }
    }

    private static func field(of aggregation: Aggregation) -> FieldPath? {
        switch aggregation.operator {
        case .count: nil
        case .sum(let path), .average(let path): path
        }
    }

    package var query: NormalizedQuery { execution.query }
    package var meter: WorkMeter { execution.meter }
    package var indexesUsed: [QueryExecution.IndexUse] { execution.indexesUsed }

    /// The results by alias.
    package func run() throws(Status) -> [(alias: String, value: Value)] {
        var sums = aggregations.map { _ in NumberSum() }
        let count =
            fields.contains { $0 != nil } || query.query.findNearest != nil
            ? try addAll(to: &sums) : try execution.count(limit: countLimit)
        return zip(aggregations, sums).map { aggregation, sum in
            switch aggregation.operator {
            case .count(let upTo): (aggregation.alias, .integer(min(Int64(count), upTo ?? .max)))
            case .sum: (aggregation.alias, sum.total)
            case .average: (aggregation.alias, sum.average)
            }
        }
    }

    /// Where counting may stop: the greatest `up_to`, when all counts have one.
    private var countLimit: Int {
        var limit = 0
        for case .count(let upTo) in aggregations.map(\.operator) {
            guard let upTo else { return .max }
            limit = max(limit, Int(clamping: upTo))
        }
        return limit
    }

    private func addAll(to sums: inout [NumberSum]) throws(Status) -> Int {
        var count = 0
        while let result = try execution.next() {
            count += 1
            let reader = FieldsReader(result.document.fields)
            for (index, path) in fields.enumerated() {
                guard let path, let value = try reader.value(at: path) else { continue }
                sums[index].add(value)
            }
        }
        return count
    }
}
