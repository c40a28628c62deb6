import HearthModel

/// One term of a target's disjunctive normal form: a conjunction of conditions. `in` is expanded into equalities.
struct IndexSubTarget {
    struct Condition {
        var path: FieldPath
        var op: Filter.Operator
        var operand: Value
    }

    var equalities: [Condition] = []
    /// `array-contains` and `array-contains-any`.
    var arrays: [Condition] = []
    var inequalities: [Condition] = []
    var hasNameCondition = false
    var orders: [Query.Order]
    var start: ClientQuery.Bound?
    var end: ClientQuery.Bound?

    /// A target with more terms is not served by indexes. Servers accept at most 30.
    static let countMax = 100

    /// nil when there are too many.
    static func all(of target: ClientTarget) -> [IndexSubTarget]? {
        guard let terms = terms(.and(target.filters.flattened)) else { return nil }
        return terms.map { IndexSubTarget($0, target) }
    }

    private init(_ conditions: [Condition], _ target: ClientTarget) {
        orders = target.orders
        start = target.start
        end = target.end
        for condition in conditions {
            if condition.path.isDocumentName {
                hasNameCondition = true
                continue
            }
            switch condition.op {
            case .equal: equalities.append(condition)
            case .arrayContains, .arrayContainsAny: arrays.append(condition)
            default: inequalities.append(condition)
            }
        }
    }

    private static func terms(_ filter: Filter) -> [[Condition]]? {
        switch filter {
        case .and(let members):
            var terms: [[Condition]] = [[]]
            for member in members {
                guard let more = Self.terms(member), terms.count * more.count <= countMax else { return nil }
                terms = terms.flatMap { term in more.map { term + $0 } }
            }
            return terms
        case .or(let members): return union(members.map { Self.terms($0) })
        case .field(let path, .in, .array(let elements)) where !path.isDocumentName:
            return union(findable(elements).map { [[Condition(path: path, op: .equal, operand: $0)]] })
        case .field(let path, let op, let operand): return [[Condition(path: path, op: op, operand: operand)]]
        case .unary: preconditionFailure("unary filters were converted to comparisons")
        }
    }

    /// Null and NaN are in no list: only `==` matches them.
    static func findable(_ elements: [Value]) -> [Value] {
        elements.filter { element in
            if case .double(let number) = element { !number.isNaN } else { element != .null }
        }
    }

    private static func union(_ parts: [[[Condition]]?]) -> [[Condition]]? {
        var terms: [[Condition]] = []
        for part in parts {
            guard let part, terms.count + part.count <= countMax else { return nil }
            terms += part
        }
        return terms
    }

    // MARK: Properties

    /// An index orders by one field with inequalities.
    var hasSeveralInequalityFields: Bool { Set(inequalities.map(\.path)).count > 1 }

    /// The number of segments of an index that covers this sub-target completely. An array filter counts separately.
    var fullSegmentCount: Int {
        var fields = Set((equalities + inequalities).map(\.path))
        for order in orders where !order.field.isDocumentName { fields.insert(order.field) }
        return fields.count + Set(arrays.map(\.path)).count
    }

    func equality(on path: FieldPath) -> Condition? { equalities.first { $0.path == path } }

    var isNameDescending: Bool { orders.last { $0.field.isDocumentName }?.descending ?? false }

    /// The segments of an index that covers this sub-target completely; nil when no index can serve it.
    var fullIndexSegments: [FieldIndex.Segment]? {
        let arrayPaths = Set(arrays.map(\.path))
        if hasSeveralInequalityFields || arrayPaths.count > 1 { return nil }
        var segments = arrayPaths.map { FieldIndex.Segment(path: $0, kind: .contains) }
        var seen: Set<FieldPath> = []
        for condition in equalities where seen.insert(condition.path).inserted {
            segments.append(FieldIndex.Segment(path: condition.path, kind: .ascending))
        }
        for order in orders where !order.field.isDocumentName && seen.insert(order.field).inserted {
            segments.append(
                FieldIndex.Segment(path: order.field, kind: order.descending ? .descending : .ascending))
        }
        return segments.isEmpty ? nil : segments
    }
}
