import HearthEngine
import HearthModel

/// The keys under which a query is filed in a `QueryIndex`: for each of its alternatives one property that all its
/// results have.
struct QueryAnchors {
    private(set) var values: [(path: FieldPath, key: [UInt8])] = []
    private(set) var members: [(path: FieldPath, key: [UInt8])] = []
    private(set) var ranges: [FieldPath: KeyRange] = [:]
    /// Of names, as path keys.
    private(set) var names: KeyRange?
    /// An alternative has no such condition.
    private(set) var isAlways = false
    private let withinCursors: Bool

    /// - Parameters:
    ///   - withinCursors: false when changes outside of the query's cursors concern it as well.
    ///   - crowd: how many others are filed under a value; called when there are several to choose from.
    init(
        _ query: NormalizedQuery, withinCursors: Bool = true, crowd: (FieldPath, [UInt8]) -> Int = { _, _ in 0 }
    ) {
        self.withinCursors = withinCursors
        for conjunction in query.disjunction {
            // One that contradicts itself has no results.
            guard let constraints = Constraints(conjunction, query: query) else { continue }
            add(constraints, query, crowd)
        }
    }

    private mutating func add(
        _ constraints: Constraints, _ query: NormalizedQuery, _ crowd: (FieldPath, [UInt8]) -> Int
    ) {
        let points = constraints.fields.compactMap { field in field.ranges.point.map { (field.path, $0) } }
        if let point = points.count > 1 ? points.min(by: { crowd($0.0, $0.1) < crowd($1.0, $1.1) }) : points.first {
            return values.append(point)
        }
        if let membership = constraints.memberships.first {
            return members.append((membership.path, IndexValue.encode(membership.value)))
        }
        if let names = Self.names(constraints) { return add(names: names) }
        if let order = query.orders.first, let range = range(of: order, constraints, query) {
            return add(range, order.field)
        }
        if let field = constraints.fields.first { return add(Self.hull(field.ranges), field.path) }
        if let order = query.orders.first {
            // Every field of the order has a value.
            if !order.field.isDocumentName { return add(Self.hull(.any), order.field) }
            if let names = names(between: query, order) { return add(names: names) }
        }
        isAlways = true
    }

    static func hull(_ ranges: ValueRanges) -> KeyRange {
        KeyRange(lower: ranges.ranges.first?.lower ?? [0xFF], upper: ranges.ranges.last.map(\.upper) ?? [])
    }

    private mutating func add(_ range: KeyRange, _ path: FieldPath) {
        ranges[path] = ranges[path].map { Self.union($0, range) } ?? range
    }

    private mutating func add(names range: KeyRange) { names = names.map { Self.union($0, range) } ?? range }

    private static func union(_ lhs: KeyRange, _ rhs: KeyRange) -> KeyRange {
        KeyRange(
            lower: UTF8Order.compare(lhs.lower, rhs.lower) <= 0 ? lhs.lower : rhs.lower,
            upper: ValueRanges.greater(lhs.upper, rhs.upper))
    }

    /// The values of the first field of the order that the filters and the cursors allow; nil when they do not restrict
    /// it.
    private func range(
        of order: Query.Order, _ constraints: Constraints, _ query: NormalizedQuery
    ) -> KeyRange? {
        if order.field.isDocumentName { return nil }
        let filtered = constraints.fields.first { $0.path == order.field }?.ranges
        let (least, greatest) = ends(query.query, order)
        if filtered == nil, least == nil, greatest == nil { return nil }
        var range = Self.hull(filtered ?? .any)
        if let least {
            let lower = IndexValue.encode(least)
            if UTF8Order.compare(lower, range.lower) > 0 { range.lower = lower }
        }
        if let greatest {
            range.upper = ValueRanges.lesser(range.upper, KeyRange.successor(ofPrefix: IndexValue.encode(greatest)))
        }
        return range
    }

    /// The first values of the cursors: the least and the greatest that are allowed. Whether they are inclusive doesn't
    /// matter here: further values may decide that.
    private func ends(_ query: Query, _ order: Query.Order) -> (least: Value?, greatest: Value?) {
        if !withinCursors { return (nil, nil) }
        let start = query.start?.values.first
        let end = query.end?.values.first
        return order.descending ? (end, start) : (start, end)
    }

    /// The names that filters allow.
    private static func names(_ constraints: Constraints) -> KeyRange? {
        for case .names(let ranges) in constraints.predicates { return hull(ranges) }
        return nil
    }

    /// The names between the cursors of an order by name.
    private func names(between query: NormalizedQuery, _ order: Query.Order) -> KeyRange? {
        let (least, greatest) = ends(query.query, order)
        var range = KeyRange(lower: [], upper: nil)
        if let least, let key = Self.pathKey(least, query) { range.lower = key }
        if let greatest, let key = Self.pathKey(greatest, query) { range.upper = KeyRange.successor(ofPrefix: key) }
        return range.lower.isEmpty && range.upper == nil ? nil : range
    }

    private static func pathKey(_ value: Value, _ query: NormalizedQuery) -> [UInt8]? {
        guard case .reference(let string) = value else { return nil }
        do throws(Status) {
            let name = try ResourceName(reference: string, in: query.query.parent.database)
            return DocumentKey.encodePath(name.path)
        } catch {
            // Checked when the query was normalised; without a bound more is examined, and nothing is missed.
            return nil
        }
    }
}
