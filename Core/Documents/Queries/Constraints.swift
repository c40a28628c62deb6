import HearthEngine
import HearthModel

/// The conditions of a conjunction, field by field.
struct Constraints {
    struct Membership {
        var path: FieldPath
        var value: Value
        /// The predicate's position in `predicates`.
        var index: Int
    }

    let predicates: [NormalizedQuery.Predicate]
    /// The allowed values, for every field with a filter other than an array membership; in order of first mention.
    private(set) var fields: [(path: FieldPath, ranges: ValueRanges)] = []
    private(set) var memberships: [Membership] = []
    /// The allowed names, relative to the query's `namePrefix`; nil without a filter on `__name__`.
    private(set) var names: ValueRanges?

    /// Nil when the conjunction contradicts itself and can have no results.
    init?(_ conjunction: NormalizedQuery.Conjunction, query: NormalizedQuery) {
        predicates = conjunction
        for (index, predicate) in conjunction.enumerated() {
            switch predicate {
            case .names(let ranges):
                let relative = Self.relative(ranges, to: query.namePrefix)
                names = names.map { $0.intersection(relative) } ?? relative
                if names!.isEmpty { return nil }
            case .field(let path, .arrayContains, let value):
                switch ValueOrder.typeClass(of: value) {
                case .null, .nan, .array: return nil
                default: memberships.append(Membership(path: path, value: value, index: index))
                }
            case .field(let path, let op, let value):
                if !narrow(path, to: ValueRanges(op, value)) { return nil }
            case .unary(let path, let op):
                if !narrow(path, to: ValueRanges(op)) { return nil }
            }
        }
    }

    /// False when no value is left.
    private mutating func narrow(_ path: FieldPath, to ranges: ValueRanges) -> Bool {
        guard let known = fields.firstIndex(where: { $0.path == path }) else {
            fields.append((path, ranges))
            return !ranges.isEmpty
        }
        fields[known].ranges = fields[known].ranges.intersection(ranges)
        return !fields[known].ranges.isEmpty
    }

    private static func relative(_ ranges: ValueRanges, to prefix: [UInt8]) -> ValueRanges {
        ValueRanges(
            ranges: ranges.ranges.map { range in
                KeyRange(
                    lower: range.lower.isEmpty ? [] : NormalizedQuery.relative(range.lower, to: prefix),
                    upper: range.upper.map { NormalizedQuery.relative($0, to: prefix) })
            })
    }

    func ranges(_ path: FieldPath) -> ValueRanges {
        fields.first { $0.path == path }?.ranges ?? .any
    }

    /// Whether an equality fixes a field, so that ordering by it has no effect. IS_NULL and IS_NAN fix it too.
    func isEquality(_ path: FieldPath) -> Bool {
        predicates.contains { predicate in
            guard predicate.path == path else { return false }
            return switch predicate {
            case .field(_, .equal, _), .unary(_, .isNull), .unary(_, .isNaN): true
            default: false
            }
        }
    }

    var isOnlyByName: Bool { fields.isEmpty && memberships.isEmpty }

    func indices(of path: FieldPath) -> [Int] {
        predicates.indices.filter { index in
            guard predicates[index].path == path else { return false }
            if case .field(_, .arrayContains, _) = predicates[index] { return false }
            return true
        }
    }

    /// The filters on fields that must still be checked on documents.
    func residual(covered: Set<Int>) -> [NormalizedQuery.Predicate] {
        predicates.indices.filter { !covered.contains($0) && predicates[$0].path != nil }.map { predicates[$0] }
    }

    // MARK: Against the order

    /// The order without the name and without fields that equalities fix.
    func sortFields(_ query: NormalizedQuery) -> [Query.Order] {
        query.orders.filter { !$0.field.isDocumentName && !isEquality($0.field) }
    }

    /// The parts of the whole order key, when the sort fields are scanned in their order.
    func parts(_ query: NormalizedQuery) -> [QueryPlan.OrderPart] {
        query.orders.map { order in
            if order.field.isDocumentName { return .name }
            return constant(order) ?? .scanned
        }
    }

    /// The constant parts before the first sort field in the order.
    func constantsBefore(_ path: FieldPath, _ query: NormalizedQuery) -> [QueryPlan.OrderPart] {
        query.orders.prefix { $0.field != path }.compactMap(constant)
    }

    private func constant(_ order: Query.Order) -> QueryPlan.OrderPart? {
        for predicate in predicates where predicate.path == order.field {
            let value: Value
            switch predicate {
            case .field(_, .equal, let operand): value = operand
            case .unary(_, .isNull): value = .null
            case .unary(_, .isNaN): value = .double(.nan)
            default: continue
            }
            var bytes: [UInt8] = []
            NormalizedQuery.appendComponent(IndexValue.encode(value), descending: order.descending, to: &bytes)
            return .constant(bytes)
        }
        return nil
    }
}
