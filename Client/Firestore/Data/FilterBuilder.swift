internal import Foundation
internal import HearthModel

/// Converts the user's filters to the model's filters and checks them.
struct FilterBuilder {
    private let query: Query

    init(_ query: Query) { self.query = query }

    /// nil for an empty group, which has no effect. A group of one filter becomes that filter.
    func filter(_ expression: Filter.Expression) throws(Status) -> ModelFilter? {
        switch expression {
        case .field(let path, let op, let value): return .field(path, op, try operand(path, op, value.value))
        case .and(let members):
            let filters = try members.mapFilters(filter)
            return filters.count > 1 ? .and(filters) : filters.first
        case .or(let members):
            let filters = try members.mapFilters(filter)
            return filters.count > 1 ? .or(filters) : filters.first
        }
    }

    private func operand(_ path: ModelFieldPath, _ op: ModelFilter.Operator, _ value: Any) throws(Status) -> Value {
        switch op {
        case .in, .notIn, .arrayContainsAny:
            guard let values = value as? [Any], !values.isEmpty else {
                throw .invalidArgument("Invalid Query. A non-empty array is required for '\(op.userName)' filters.")
            }
            if path.isDocumentName { try rejectArrayOperators(op) }
            var operands: [Value] = []
            operands.reserveCapacity(values.count)
            for value in values {
                operands.append(
                    path.isDocumentName
                        ? try KeyOperand(query).filter(value) : try query.firestore.reader.queryValue(value))
            }
            return .array(operands)
        default:
            guard path.isDocumentName else { return try query.firestore.reader.queryValue(value) }
            try rejectArrayOperators(op)
            return try KeyOperand(query).filter(value)
        }
    }

    private func rejectArrayOperators(_ op: ModelFilter.Operator) throws(Status) {
        if op == .arrayContains || op == .arrayContainsAny {
            throw .invalidArgument(
                "Invalid query. You can't perform '\(op.userName)' queries on document ID since document IDs are not "
                    + "arrays.")
        }
    }

    // MARK: Combinations of filters

    /// At most one `!=` or `not-in`. `not-in` cannot be combined with `in` or `array-contains-any`.
    static func validate(_ filter: ModelFilter, besides others: [ModelFilter]) throws(Status) {
        var seen = others.flatMap { operators(of: $0) }
        for op in operators(of: filter) {
            if let other = seen.first(where: { op.conflicts(with: $0) }) {
                throw .invalidArgument(
                    other == op
                        ? "Invalid Query. You cannot use more than one '\(op.userName)' filter."
                        : "Invalid Query. You cannot use '\(op.userName)' filters with '\(other.userName)' filters.")
            }
            seen.append(op)
        }
    }

    private static func operators(of filter: ModelFilter) -> [ModelFilter.Operator] {
        switch filter {
        case .and(let members), .or(let members): members.flatMap { operators(of: $0) }
        case .field(_, let op, _): [op]
        case .unary: []
        }
    }
}

extension [Filter.Expression] {
    fileprivate func mapFilters(
        _ filter: (Filter.Expression) throws(Status) -> ModelFilter?
    ) throws(Status) -> [ModelFilter] {
        var filters: [ModelFilter] = []
        for member in self {
            if let member = try filter(member) { filters.append(member) }
        }
        return filters
    }
}

extension ModelFilter.Operator {
    /// The operator in the user's form.
    fileprivate var userName: String {
        switch self {
        case .lessThan: "isLessThan"
        case .lessThanOrEqual: "isLessThanOrEqualTo"
        case .greaterThan: "isGreaterThan"
        case .greaterThanOrEqual: "isGreaterThanOrEqualTo"
        case .equal: "isEqualTo"
        case .notEqual: "isNotEqualTo"
        case .arrayContains: "arrayContains"
        case .arrayContainsAny: "arrayContainsAny"
        case .in: "in"
        case .notIn: "notIn"
        }
    }

    fileprivate func conflicts(with other: Self) -> Bool {
        switch self {
        case .notEqual: other == .notEqual || other == .notIn
        case .notIn: other == .notEqual || other == .notIn || other == .in || other == .arrayContainsAny
        case .in, .arrayContainsAny: other == .notIn
        default: false
        }
    }
}
