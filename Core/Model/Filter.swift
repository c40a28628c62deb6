/// A filter tree. Source: google.firestore.v1.StructuredQuery.Filter.
@usableFromInline package indirect enum Filter: Sendable {
    case and([Filter])
    case or([Filter])
    case field(FieldPath, Operator, Value)
    case unary(FieldPath, UnaryOperator)

    @usableFromInline package enum Operator: Int, Sendable, CaseIterable {
        case lessThan = 1
        case lessThanOrEqual = 2
        case greaterThan = 3
        case greaterThanOrEqual = 4
        case equal = 5
        case notEqual = 6
        case arrayContains = 7
        case `in` = 8
        case arrayContainsAny = 9
        case notIn = 10

        /// The name in Google's messages.
        package var name: String {
            switch self {
            case .lessThan: "LESS_THAN"
            case .lessThanOrEqual: "LESS_THAN_OR_EQUAL"
            case .greaterThan: "GREATER_THAN"
            case .greaterThanOrEqual: "GREATER_THAN_OR_EQUAL"
            case .equal: "EQUAL"
            case .notEqual: "NOT_EQUAL"
            case .arrayContains: "ARRAY_CONTAINS"
            case .in: "IN"
            case .arrayContainsAny: "ARRAY_CONTAINS_ANY"
            case .notIn: "NOT_IN"
            }
        }

        /// Whether this operator adds an implied order by its field.
        @inlinable package var isInequality: Bool {
            switch self {
            case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .notIn: true
            case .equal, .arrayContains, .in, .arrayContainsAny: false
            }
        }
    }

    @usableFromInline package enum UnaryOperator: Int, Sendable, CaseIterable {
        case isNaN = 2
        case isNull = 3
        case isNotNaN = 4
        case isNotNull = 5

        package var name: String {
            switch self {
            case .isNaN: "IS_NAN"
            case .isNull: "IS_NULL"
            case .isNotNaN: "IS_NOT_NAN"
            case .isNotNull: "IS_NOT_NULL"
            }
        }

        @inlinable package var isInequality: Bool { self == .isNotNaN || self == .isNotNull }
    }
}
