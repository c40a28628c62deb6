/// A query as a client sent it: parsed, not yet normalised. Source: google.firestore.v1.StructuredQuery.
@usableFromInline package struct Query: Sendable {
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

    @usableFromInline package struct Order: Sendable, Equatable {
        @usableFromInline package var field: FieldPath
        @usableFromInline package var descending: Bool

        @inlinable package init(field: FieldPath, descending: Bool) {
            self.field = field
            self.descending = descending
        }
    }

    @usableFromInline package struct Cursor: Sendable {
        @usableFromInline package var values: [Value]
        @usableFromInline package var before: Bool

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
