import HearthModel

/// google.firestore.v1.StructuredQuery
public struct StructuredQueryMessage: WireMessage {
    public struct Direction: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = Direction(rawValue: 0)
        public static let ascending = Direction(rawValue: 1)
        public static let descending = Direction(rawValue: 2)

        public static let typeName = "google.firestore.v1.StructuredQuery.Direction"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "DIRECTION_UNSPECIFIED"), (1, "ASCENDING"), (2, "DESCENDING"),
        ]
    }

    public struct CollectionSelector: WireMessage {
        public var collectionId: String
        public var allDescendants: Bool

        public init() {
            self.init(collectionId: "")
        }

        public init(collectionId: String = "", allDescendants: Bool = false) {
            self.collectionId = collectionId
            self.allDescendants = allDescendants
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.CollectionSelector"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(2, "collection_id", &collectionId)
            try visitor.bool(3, "all_descendants", &allDescendants)
        }
    }

    public struct Filter: WireMessage {
        public var compositeFilter: StructuredQueryMessage.CompositeFilter?
        public var fieldFilter: StructuredQueryMessage.FieldFilter?
        public var unaryFilter: StructuredQueryMessage.UnaryFilter?

        public init() {
            self.init(compositeFilter: nil)
        }

        public init(
            compositeFilter: StructuredQueryMessage.CompositeFilter? = nil,
            fieldFilter: StructuredQueryMessage.FieldFilter? = nil,
            unaryFilter: StructuredQueryMessage.UnaryFilter? = nil
        ) {
            self.compositeFilter = compositeFilter
            self.fieldFilter = fieldFilter
            self.unaryFilter = unaryFilter
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.Filter"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "composite_filter", oneof: "filter_type", &compositeFilter)
            try visitor.message(2, "field_filter", oneof: "filter_type", &fieldFilter)
            try visitor.message(3, "unary_filter", oneof: "filter_type", &unaryFilter)
        }
    }

    public struct CompositeFilter: WireMessage {
        public struct Operator: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = Operator(rawValue: 0)
            public static let and = Operator(rawValue: 1)
            public static let or = Operator(rawValue: 2)

            public static let typeName = "google.firestore.v1.StructuredQuery.CompositeFilter.Operator"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "OPERATOR_UNSPECIFIED"), (1, "AND"), (2, "OR"),
            ]
        }

        public var op: Operator
        public var filters: [StructuredQueryMessage.Filter]

        public init() {
            self.init(op: Operator())
        }

        public init(op: Operator = Operator(), filters: [StructuredQueryMessage.Filter] = []) {
            self.op = op
            self.filters = filters
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.CompositeFilter"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "op", &op)
            try visitor.messages(2, "filters", &filters)
        }
    }

    public struct FieldFilter: WireMessage {
        public struct Operator: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = Operator(rawValue: 0)
            public static let lessThan = Operator(rawValue: 1)
            public static let lessThanOrEqual = Operator(rawValue: 2)
            public static let greaterThan = Operator(rawValue: 3)
            public static let greaterThanOrEqual = Operator(rawValue: 4)
            public static let equal = Operator(rawValue: 5)
            public static let notEqual = Operator(rawValue: 6)
            public static let arrayContains = Operator(rawValue: 7)
            public static let `in` = Operator(rawValue: 8)
            public static let arrayContainsAny = Operator(rawValue: 9)
            public static let notIn = Operator(rawValue: 10)

            public static let typeName = "google.firestore.v1.StructuredQuery.FieldFilter.Operator"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "OPERATOR_UNSPECIFIED"), (1, "LESS_THAN"), (2, "LESS_THAN_OR_EQUAL"), (3, "GREATER_THAN"),
                (4, "GREATER_THAN_OR_EQUAL"), (5, "EQUAL"), (6, "NOT_EQUAL"), (7, "ARRAY_CONTAINS"), (8, "IN"),
                (9, "ARRAY_CONTAINS_ANY"), (10, "NOT_IN"),
            ]
        }

        public var field: StructuredQueryMessage.FieldReference?
        public var op: Operator
        public var value: Value?

        public init() {
            self.init(field: nil)
        }

        public init(
            field: StructuredQueryMessage.FieldReference? = nil, op: Operator = Operator(), value: Value? = nil
        ) {
            self.field = field
            self.op = op
            self.value = value
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.FieldFilter"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "field", &field)
            try visitor.enumeration(2, "op", &op)
            try visitor.value(3, "value", &value)
        }
    }

    public struct UnaryFilter: WireMessage {
        public struct Operator: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = Operator(rawValue: 0)
            public static let isNan = Operator(rawValue: 2)
            public static let isNull = Operator(rawValue: 3)
            public static let isNotNan = Operator(rawValue: 4)
            public static let isNotNull = Operator(rawValue: 5)

            public static let typeName = "google.firestore.v1.StructuredQuery.UnaryFilter.Operator"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "OPERATOR_UNSPECIFIED"), (2, "IS_NAN"), (3, "IS_NULL"), (4, "IS_NOT_NAN"), (5, "IS_NOT_NULL"),
            ]
        }

        public var op: Operator
        public var field: StructuredQueryMessage.FieldReference?

        public init() {
            self.init(op: Operator())
        }

        public init(op: Operator = Operator(), field: StructuredQueryMessage.FieldReference? = nil) {
            self.op = op
            self.field = field
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.UnaryFilter"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "op", &op)
            try visitor.message(2, "field", oneof: "operand_type", &field)
        }
    }

    public struct Order: WireMessage {
        public var field: StructuredQueryMessage.FieldReference?
        public var direction: StructuredQueryMessage.Direction

        public init() {
            self.init(field: nil)
        }

        public init(
            field: StructuredQueryMessage.FieldReference? = nil,
            direction: StructuredQueryMessage.Direction = StructuredQueryMessage.Direction()
        ) {
            self.field = field
            self.direction = direction
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.Order"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "field", &field)
            try visitor.enumeration(2, "direction", &direction)
        }
    }

    public struct FieldReference: WireMessage {
        public var fieldPath: String

        public init() {
            self.init(fieldPath: "")
        }

        public init(fieldPath: String = "") {
            self.fieldPath = fieldPath
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.FieldReference"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(2, "field_path", &fieldPath)
        }
    }

    public struct Projection: WireMessage {
        public var fields: [StructuredQueryMessage.FieldReference]

        public init() {
            self.init(fields: [])
        }

        public init(fields: [StructuredQueryMessage.FieldReference] = []) {
            self.fields = fields
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.Projection"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.messages(2, "fields", &fields)
        }
    }

    public struct FindNearest: WireMessage {
        public struct DistanceMeasure: WireEnum {
            public var rawValue: Int32

            public init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            public static let unspecified = DistanceMeasure(rawValue: 0)
            public static let euclidean = DistanceMeasure(rawValue: 1)
            public static let cosine = DistanceMeasure(rawValue: 2)
            public static let dotProduct = DistanceMeasure(rawValue: 3)

            public static let typeName = "google.firestore.v1.StructuredQuery.FindNearest.DistanceMeasure"
            public static let names: [(number: Int32, name: StaticString)] = [
                (0, "DISTANCE_MEASURE_UNSPECIFIED"), (1, "EUCLIDEAN"), (2, "COSINE"), (3, "DOT_PRODUCT"),
            ]
        }

        public var vectorField: StructuredQueryMessage.FieldReference?
        public var queryVector: Value?
        public var distanceMeasure: DistanceMeasure
        public var limit: Int32?
        public var distanceResultField: String
        public var distanceThreshold: Double?

        public init() {
            self.init(vectorField: nil)
        }

        public init(
            vectorField: StructuredQueryMessage.FieldReference? = nil, queryVector: Value? = nil,
            distanceMeasure: DistanceMeasure = DistanceMeasure(), limit: Int32? = nil,
            distanceResultField: String = "", distanceThreshold: Double? = nil
        ) {
            self.vectorField = vectorField
            self.queryVector = queryVector
            self.distanceMeasure = distanceMeasure
            self.limit = limit
            self.distanceResultField = distanceResultField
            self.distanceThreshold = distanceThreshold
        }

        public static let typeName = "google.firestore.v1.StructuredQuery.FindNearest"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "vector_field", &vectorField)
            try visitor.value(2, "query_vector", &queryVector)
            try visitor.enumeration(3, "distance_measure", &distanceMeasure)
            try visitor.int32Value(4, "limit", &limit)
            try visitor.string(5, "distance_result_field", &distanceResultField)
            try visitor.doubleValue(6, "distance_threshold", &distanceThreshold)
        }
    }

    public var select: Projection?
    public var from: [CollectionSelector]
    public var `where`: Filter?
    public var orderBy: [Order]
    public var startAt: CursorMessage?
    public var endAt: CursorMessage?
    public var offset: Int32
    public var limit: Int32?
    public var findNearest: FindNearest?

    public init() {
        self.init(select: nil)
    }

    public init(
        select: Projection? = nil, from: [CollectionSelector] = [], `where`: Filter? = nil, orderBy: [Order] = [],
        startAt: CursorMessage? = nil, endAt: CursorMessage? = nil, offset: Int32 = 0, limit: Int32? = nil,
        findNearest: FindNearest? = nil
    ) {
        self.select = select
        self.from = from
        self.where = `where`
        self.orderBy = orderBy
        self.startAt = startAt
        self.endAt = endAt
        self.offset = offset
        self.limit = limit
        self.findNearest = findNearest
    }

    public static let typeName = "google.firestore.v1.StructuredQuery"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "select", &select)
        try visitor.messages(2, "from", &from)
        try visitor.message(3, "where", &`where`)
        try visitor.messages(4, "order_by", &orderBy)
        try visitor.int32Value(5, "limit", &limit)
        try visitor.int32(6, "offset", &offset)
        try visitor.message(7, "start_at", &startAt)
        try visitor.message(8, "end_at", &endAt)
        try visitor.message(9, "find_nearest", &findNearest)
    }
}

/// google.firestore.v1.Cursor
public struct CursorMessage: WireMessage {
    public var values: [Value]
    public var before: Bool

    public init() {
        self.init(values: [])
    }

    public init(values: [Value] = [], before: Bool = false) {
        self.values = values
        self.before = before
    }

    public static let typeName = "google.firestore.v1.Cursor"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.values(1, "values", &values)
        try visitor.bool(2, "before", &before)
    }
}
