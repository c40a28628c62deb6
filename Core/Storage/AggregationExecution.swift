import HearthModel
import HearthWire

/// Counts, sums and averages over the results of a query.
public final class AggregationExecution {
    public let query: NormalizedQuery
    let plan: QueryPlan
    public let meter: WorkMeter
    private let view: ReadView
    private let context: QueryContext
    private let aggregations: [Aggregation]

    /// - Throws: INVALID_ARGUMENT for a query or an aggregation that is not allowed; FAILED_PRECONDITION for a missing
    ///   index when `requireIndexes`.
    public init(
        _ query: Query, _ aggregations: [Aggregation], view: ReadView, meter: WorkMeter = WorkMeter(),
        requireIndexes: Bool = false
    ) throws(Status) {
        self.query = try Self.normalize(query, aggregations)
        self.aggregations = aggregations
        self.view = view
        self.meter = meter
        plan = try Planner(query: self.query, catalog: view.catalog, snapshot: view.snapshot).plan()
        if requireIndexes, let missing = plan.branches.compactMap(\.missingIndex).first {
            throw MissingIndex.status(missing, database: query.parent.database)
        }
        context = try QueryContext(self.query, view: view, meter: meter)
    }

    /// The base query with the aggregated fields in its order: only documents that have all of them count.
    /// - Throws: INVALID_ARGUMENT when the query's order or projection leaves no place for them.
    public static func normalize(_ query: Query, _ aggregations: [Aggregation]) throws(Status) -> NormalizedQuery {
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
        if query.orders.last?.field.isDocumentName ?? false {
            let missing = fields.filter { field in !query.orders.contains { $0.field == field } }
            if !missing.isEmpty {
                throw .invalidArgument(
                    "This query requires an index that has fields [\(missing.map(\.text).joined(separator: ", "))] after "
                        + "__name__ and Firestore does not currently support such an index. Please try the query again "
                        + "with additional ordering on those fields.")
            }
        }
        return try NormalizedQuery(query, existing: fields)
    }

    private static func field(of aggregation: Aggregation) -> FieldPath? {
        switch aggregation.operator {
        case .count: nil
        case .sum(let path), .average(let path): path
        }
    }

    /// Whether the answer comes from a count of index entries alone.
    private var isPlainCount: Bool {
        !view.isPast && query.query.findNearest == nil && aggregations.allSatisfy { Self.field(of: $0) == nil }
            && plan.branches.count == 1 && plan.branches[0].sources.count == 1 && plan.branches[0].residual.isEmpty
            && !plan.branches[0].checksScope && plan.branches[0].isFullyOrdered(query.orders) && boundsArePushedDown
    }

    /// Cursors of an order by name alone are in the ranges; others are checked on each candidate.
    private var boundsArePushedDown: Bool {
        !query.hasBounds || (query.orders.count == 1 && query.query.scope != .anyCollection)
    }

    public var indexesUsed: [QueryExecution.IndexUse] { plan.indexesUsed(query) }

    /// The results by alias.
    public func run() throws(Status) -> [(alias: String, value: Value)] {
        if isPlainCount { return try plainCount() }
        let fields = aggregations.map { Self.field(of: $0) }
        var sums = aggregations.map { _ in NumberSum() }
        var count: Int64 = 0
        let countMax = fields.contains { $0 != nil } ? nil : countLimit
        try forEachResult { result throws(Status) in
            count += 1
            for (index, path) in fields.enumerated() {
                guard let path, let value = try FieldsReader(result.document.fields).value(at: path) else { continue }
                sums[index].add(value)
            }
            return countMax.map { count < $0 } ?? true
        }
        return zip(aggregations, sums).map { aggregation, sum in
            switch aggregation.operator {
            case .count(let upTo): (aggregation.alias, .integer(min(count, upTo ?? .max)))
            case .sum: (aggregation.alias, sum.total)
            case .average: (aggregation.alias, sum.average)
            }
        }
    }

    /// Where counting may stop: the greatest `up_to`, when all counts have one.
    private var countLimit: Int64? {
        var limit: Int64 = 0
        for case .count(let upTo) in aggregations.map(\.operator) {
            guard let upTo else { return nil }
            limit = max(limit, upTo)
        }
        return limit
    }

    private func plainCount() throws(Status) -> [(alias: String, value: Value)] {
        let branch = plan.branches[0]
        let offset = query.query.offset
        let most = min(query.query.limit.map { $0 + offset } ?? .max, countLimit.map { Int(clamping: $0) + offset } ?? .max)
        var total = 0
        for range in branch.sources[0].ranges where total < most {
            let source = branch.sources[0]
            total += try view.snapshot.count(
                source.keyspace, Planner.absolute(range, prefix: source.prefix), limit: most == .max ? .max : most - total)
        }
        let count = Int64(max(0, total - offset))
        return aggregations.map { aggregation in
            guard case .count(let upTo) = aggregation.operator else { return (aggregation.alias, .null) }
            return (aggregation.alias, .integer(min(count, upTo ?? .max)))
        }
    }

    private func forEachResult(_ body: (QueryResult) throws(Status) -> Bool) throws(Status) {
        let execution = try QueryExecution(query, view: view, meter: meter)
        while let result = try execution.next() {
            if try !body(result) { return }
        }
    }
}

/// A sum of int64 and double values: exact for integers whatever overflows on the way, compensated for doubles.
struct NumberSum {
    private var integers = WideInteger()
    private var hasDouble = false
    private var sum = 0.0
    private var compensation = 0.0
    private var count = 0

    /// Adds a number; values of other types are passed over.
    mutating func add(_ value: Value) {
        switch value {
        case .integer(let number):
            integers.add(number)
            count += 1
        case .double(let number):
            hasDouble = true
            addCompensated(number)
            count += 1
        default: break
        }
    }

    /// Neumaier's summation.
    private mutating func addCompensated(_ number: Double) {
        let next = sum + number
        if next.isFinite {
            compensation += abs(sum) >= abs(number) ? (sum - next) + number : (number - next) + sum
        }
        sum = next
    }

    private var doubleTotal: Double {
        guard sum.isFinite else { return sum }
        // The integers' part enters as one more summand.
        var whole = self
        whole.addCompensated(integers.double)
        return whole.sum + whole.compensation
    }

    /// An integer when all are integers and it fits, else a double; the integer 0 for nothing.
    var total: Value {
        if !hasDouble {
            if let exact = integers.int64 { return .integer(exact) }
            return .double(integers.double)
        }
        return .double(doubleTotal)
    }

    /// A double, or null for nothing.
    var average: Value {
        count == 0 ? .null : .double((hasDouble ? doubleTotal : integers.double) / Double(count))
    }
}

/// A sum of int64 in 128 bits.
struct WideInteger {
    private var high: Int64 = 0
    private var low: UInt64 = 0

    mutating func add(_ number: Int64) {
        let (sum, carry) = low.addingReportingOverflow(UInt64(bitPattern: number))
        low = sum
        high &+= (number < 0 ? -1 : 0) &+ (carry ? 1 : 0)
    }

    var int64: Int64? {
        let value = Int64(bitPattern: low)
        return high == (value < 0 ? -1 : 0) ? value : nil
    }

    var double: Double {
        if let int64 { return Double(int64) }
        return Double(high) * 0x1p64 + Double(low)
    }
}
