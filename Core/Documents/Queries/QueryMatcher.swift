import HearthModel
import HearthWire

/// Decides for single documents whether they match a query's scope and filter.
///
/// Used where no index answers: residual filters, past states, the validation of transactions, listeners. It compares
/// values exactly, never by their cut index form.
struct QueryMatcher: Sendable {
    let query: NormalizedQuery
    private let scope: ScopeMatcher

    init(_ query: NormalizedQuery) {
        self.query = query
        scope = ScopeMatcher(query.query)
    }

    /// Whether a document belongs to the query's results, ignoring cursors, offset and limit.
    func matches(key: [UInt8], fields: [UInt8]) throws(Status) -> Bool {
        try matches(key: key, FieldsReader(fields))
    }

    func matches(key: [UInt8], _ fields: some FieldSource) throws(Status) -> Bool {
        guard scope.contains(key), try hasOrderFields(fields) else { return false }
        return try matchesFilter(key: key, fields)
    }

    func isInScope(_ key: [UInt8]) -> Bool { scope.contains(key) }

    func hasOrderFields(_ fields: some FieldSource) throws(Status) -> Bool {
        for order in query.orders where !order.field.isDocumentName {
            if try !fields.contains(order.field) { return false }
        }
        return true
    }

    func matchesFilter(key: [UInt8], _ fields: some FieldSource) throws(Status) -> Bool {
        for conjunction in query.disjunction {
            if try matches(conjunction, key: key, fields) { return true }
        }
        return false
    }

    func matches(_ conjunction: NormalizedQuery.Conjunction, key: [UInt8], fields: [UInt8]) throws(Status) -> Bool {
        try matches(conjunction, key: key, FieldsReader(fields))
    }

    private func matches(
        _ conjunction: NormalizedQuery.Conjunction, key: [UInt8], _ fields: some FieldSource
    ) throws(Status) -> Bool {
        for predicate in conjunction {
            if try !matches(predicate, key: key, fields) { return false }
        }
        return true
    }

    private func matches(
        _ predicate: NormalizedQuery.Predicate, key: [UInt8], _ fields: some FieldSource
    ) throws(Status) -> Bool {
        switch predicate {
        case .names(let ranges): return DocumentKey.toPathKey(key).map(ranges.contains) ?? false
        case .field(let path, let op, let operand):
            return try fields.value(at: path).map { Self.matches(op, $0, operand) } ?? false
        case .unary(let path, let op):
            return try fields.typeClass(at: path).map { Self.matches(op, $0) } ?? false
        }
    }

    private static func matches(_ op: Filter.UnaryOperator, _ type: ValueOrder.TypeClass) -> Bool {
        switch op {
        case .isNull: type == .null
        case .isNotNull: type != .null
        case .isNaN: type == .nan
        case .isNotNaN: type != .null && type != .nan
        }
    }

    private static func matches(_ op: Filter.Operator, _ value: Value, _ operand: Value) -> Bool {
        let operandClass = ValueOrder.typeClass(of: operand)
        switch op {
        case .equal: return isComparable(operand) && ValueOrder.equivalent(value, operand)
        case .notEqual:
            if operandClass == .null || value == .null { return false }
            return !ValueOrder.equivalent(value, operand)
        case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
            guard isComparable(operand), ValueOrder.typeClass(of: value) == operandClass else { return false }
            let order = ValueOrder.compare(value, operand)
            return switch op {
            case .lessThan: order < 0
            case .lessThanOrEqual: order <= 0
            case .greaterThan: order > 0
            default: order >= 0
            }
        case .arrayContains:
            guard isComparable(operand), case .array(let elements) = value else { return false }
            return elements.contains { ValueOrder.equivalent($0, operand) }
        case .in: return elements(operand).contains { matches(.equal, value, $0) }
        case .arrayContainsAny: return elements(operand).contains { matches(.arrayContains, value, $0) }
        case .notIn:
            if value == .null { return false }
            return elements(operand).allSatisfy { $0 != .null && !ValueOrder.equivalent(value, $0) }
        }
    }

    /// Null and NaN as operands equal nothing, not even themselves: the unary filters test for them.
    private static func isComparable(_ operand: Value) -> Bool {
        let type = ValueOrder.typeClass(of: operand)
        return type != .null && type != .nan
    }

    private static func elements(_ operand: Value) -> [Value] {
        if case .array(let elements) = operand { elements } else { [] }
    }
}
