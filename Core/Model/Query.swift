/// A query as a client sent it: parsed, not yet normalised. Source: google.firestore.v1.StructuredQuery.
package struct Query: Sendable {
    /// The documents that a query reads, below the parent.
    package enum Scope: Sendable, Equatable {
        /// The documents of one collection directly below the parent.
        case collection(String)
        /// The documents of every collection with this id, at any depth below the parent.
        case collectionGroup(String)
        /// The documents of all collections directly below the parent.
        case anyCollection
        /// Every document below the parent.
        case allDescendants
    }

    package struct Order: Sendable, Equatable {
        package var field: FieldPath
        package var descending: Bool

        @inlinable package init(field: FieldPath, descending: Bool) {
            self.field = field
            self.descending = descending
        }
    }

    package struct Cursor: Sendable {
        package var values: [Value]
        package var before: Bool

        @inlinable package init(values: [Value], before: Bool) {
            self.values = values
            self.before = before
        }
    }

    package struct FindNearest: Sendable {
        package enum Measure: Int, Sendable {
            case euclidean = 1
            case cosine = 2
            case dotProduct = 3
        }

        package var field: FieldPath
        package var vector: [Double]
        package var measure: Measure
        package var limit: Int
        package var resultField: FieldPath?
        package var threshold: Double?

        package init(
            field: FieldPath, vector: [Double], measure: Measure, limit: Int, resultField: FieldPath?,
            threshold: Double?
        ) {
            self.field = field
            self.vector = vector
            self.measure = measure
            self.limit = limit
            self.resultField = resultField
            self.threshold = threshold
        }
    }

    /// The database root or a document.
    package var parent: ResourceName
    package var scope: Scope
    package var filter: Filter?
    /// As the client sent them; the planner adds the implied orders.
    package var orders: [Order]
    package var start: Cursor?
    package var end: Cursor?
    package var offset: Int
    package var limit: Int?
    /// The fields to return: nil for all, an empty list for names only.
    package var projection: [FieldPath]?
    package var findNearest: FindNearest?

    package init(
        parent: ResourceName, scope: Scope, filter: Filter? = nil, orders: [Order] = [], start: Cursor? = nil,
        end: Cursor? = nil, offset: Int = 0, limit: Int? = nil, projection: [FieldPath]? = nil,
        findNearest: FindNearest? = nil
    ) {
        self.parent = parent
        self.scope = scope
        self.filter = filter
        self.orders = orders
        self.start = start
        self.end = end
        self.offset = offset
        self.limit = limit
        self.projection = projection
        self.findNearest = findNearest
    }
}

/// A filter tree. Source: google.firestore.v1.StructuredQuery.Filter.
package indirect enum Filter: Sendable {
    case and([Filter])
    case or([Filter])
    case field(FieldPath, Operator, Value)
    case unary(FieldPath, UnaryOperator)

    package enum Operator: Int, Sendable, CaseIterable {
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

    package enum UnaryOperator: Int, Sendable, CaseIterable {
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

/// One figure over a query's results. Source: google.firestore.v1.StructuredAggregationQuery.Aggregation.
package struct Aggregation: Sendable {
    package enum Operator: Sendable {
        /// - Parameter upTo: counting stops there; nil counts all.
        case count(upTo: Int64?)
        case sum(FieldPath)
        case average(FieldPath)
    }

    package var alias: String
    package var `operator`: Operator

    @inlinable package init(alias: String, operator: Operator) {
        self.alias = alias
        self.operator = `operator`
    }
}
