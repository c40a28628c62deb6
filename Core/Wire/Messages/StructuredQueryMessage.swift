import HearthModel

/// google.firestore.v1.StructuredQuery
package struct StructuredQueryMessage: WireMessage {
    package struct Direction: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = Direction(rawValue: 0)
        package static let ascending = Direction(rawValue: 1)
        package static let descending = Direction(rawValue: 2)

        package static let typeName = "google.firestore.v1.StructuredQuery.Direction"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "DIRECTION_UNSPECIFIED"), (1, "ASCENDING"), (2, "DESCENDING"),
        ]
    }

    package struct CollectionSelector: WireMessage {
        package var collectionId: String
        package var allDescendants: Bool

        package init() {
            self.init(collectionId: "")
        }

        package init(collectionId: String = "", allDescendants: Bool = false) {
            self.collectionId = collectionId
            self.allDescendants = allDescendants
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.CollectionSelector"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(2, "collection_id", &collectionId)
            try visitor.bool(3, "all_descendants", &allDescendants)
        }
    }

    package struct Filter: WireMessage {
        package var compositeFilter: StructuredQueryMessage.CompositeFilter?
        package var fieldFilter: StructuredQueryMessage.FieldFilter?
        package var unaryFilter: StructuredQueryMessage.UnaryFilter?

        package init() {
            self.init(compositeFilter: nil)
        }

        package init(
            compositeFilter: StructuredQueryMessage.CompositeFilter? = nil,
            fieldFilter: StructuredQueryMessage.FieldFilter? = nil,
            unaryFilter: StructuredQueryMessage.UnaryFilter? = nil
        ) {
            self.compositeFilter = compositeFilter
            self.fieldFilter = fieldFilter
            self.unaryFilter = unaryFilter
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.Filter"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "composite_filter", oneof: "filter_type", &compositeFilter)
            try visitor.message(2, "field_filter", oneof: "filter_type", &fieldFilter)
            try visitor.message(3, "unary_filter", oneof: "filter_type", &unaryFilter)
        }
    }

    package struct CompositeFilter: WireMessage {
        package struct Operator: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = Operator(rawValue: 0)
            package static let and = Operator(rawValue: 1)
            package static let or = Operator(rawValue: 2)

            package static let typeName = "google.firestore.v1.StructuredQuery.CompositeFilter.Operator"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "OPERATOR_UNSPECIFIED"), (1, "AND"), (2, "OR"),
            ]
        }

        package var op: Operator
        package var filters: [StructuredQueryMessage.Filter]

        package init() {
            self.init(op: Operator())
        }

        package init(op: Operator = Operator(), filters: [StructuredQueryMessage.Filter] = []) {
            self.op = op
            self.filters = filters
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.CompositeFilter"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "op", &op)
            try visitor.messages(2, "filters", &filters)
        }
    }

    package struct FieldFilter: WireMessage {
        package struct Operator: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = Operator(rawValue: 0)
            package static let lessThan = Operator(rawValue: 1)
            package static let lessThanOrEqual = Operator(rawValue: 2)
            package static let greaterThan = Operator(rawValue: 3)
            package static let greaterThanOrEqual = Operator(rawValue: 4)
            package static let equal = Operator(rawValue: 5)
            package static let notEqual = Operator(rawValue: 6)
            package static let arrayContains = Operator(rawValue: 7)
            package static let `in` = Operator(rawValue: 8)
            package static let arrayContainsAny = Operator(rawValue: 9)
            package static let notIn = Operator(rawValue: 10)

            package static let typeName = "google.firestore.v1.StructuredQuery.FieldFilter.Operator"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "OPERATOR_UNSPECIFIED"), (1, "LESS_THAN"), (2, "LESS_THAN_OR_EQUAL"), (3, "GREATER_THAN"),
                (4, "GREATER_THAN_OR_EQUAL"), (5, "EQUAL"), (6, "NOT_EQUAL"), (7, "ARRAY_CONTAINS"), (8, "IN"),
                (9, "ARRAY_CONTAINS_ANY"), (10, "NOT_IN"),
            ]
        }

        package var field: StructuredQueryMessage.FieldReference?
        package var op: Operator
        package var value: Value?

        package init() {
            self.init(field: nil)
        }

        package init(
            field: StructuredQueryMessage.FieldReference? = nil, op: Operator = Operator(), value: Value? = nil
        ) {
            self.field = field
            self.op = op
            self.value = value
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.FieldFilter"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "field", &field)
            try visitor.enumeration(2, "op", &op)
            try visitor.value(3, "value", &value)
        }
    }

    package struct UnaryFilter: WireMessage {
        package struct Operator: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = Operator(rawValue: 0)
            package static let isNan = Operator(rawValue: 2)
            package static let isNull = Operator(rawValue: 3)
            package static let isNotNan = Operator(rawValue: 4)
            package static let isNotNull = Operator(rawValue: 5)

            package static let typeName = "google.firestore.v1.StructuredQuery.UnaryFilter.Operator"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "OPERATOR_UNSPECIFIED"), (2, "IS_NAN"), (3, "IS_NULL"), (4, "IS_NOT_NAN"), (5, "IS_NOT_NULL"),
            ]
        }

        package var op: Operator
        package var field: StructuredQueryMessage.FieldReference?

        package init() {
            self.init(op: Operator())
        }

        package init(op: Operator = Operator(), field: StructuredQueryMessage.FieldReference? = nil) {
            self.op = op
            self.field = field
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.UnaryFilter"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "op", &op)
            try visitor.message(2, "field", oneof: "operand_type", &field)
        }
    }

    package struct Order: WireMessage {
        package var field: StructuredQueryMessage.FieldReference?
        package var direction: StructuredQueryMessage.Direction

        package init() {
            self.init(field: nil)
        }

        package init(
            field: StructuredQueryMessage.FieldReference? = nil,
            direction: StructuredQueryMessage.Direction = StructuredQueryMessage.Direction()
        ) {
            self.field = field
            self.direction = direction
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.Order"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "field", &field)
            try visitor.enumeration(2, "direction", &direction)
        }
    }

    package struct FieldReference: WireMessage {
        package var fieldPath: String

        package init() {
            self.init(fieldPath: "")
        }

        package init(fieldPath: String = "") {
            self.fieldPath = fieldPath
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.FieldReference"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(2, "field_path", &fieldPath)
        }
    }

    package struct Projection: WireMessage {
        package var fields: [StructuredQueryMessage.FieldReference]

        package init() {
            self.init(fields: [])
        }

        package init(fields: [StructuredQueryMessage.FieldReference] = []) {
            self.fields = fields
        }

        package static let typeName = "google.firestore.v1.StructuredQuery.Projection"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.messages(2, "fields", &fields)
        }
    }

    package struct FindNearest: WireMessage {
        package struct DistanceMeasure: WireEnum {
            package var rawValue: Int32

            package init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            package static let unspecified = DistanceMeasure(rawValue: 0)
            package static let euclidean = DistanceMeasure(rawValue: 1)
            package static let cosine = DistanceMeasure(rawValue: 2)
            package static let dotProduct = DistanceMeasure(rawValue: 3)

            package static let typeName = "google.firestore.v1.StructuredQuery.FindNearest.DistanceMeasure"
            package static let names: [(number: Int32, name: StaticString)] = [
                (0, "DISTANCE_MEASURE_UNSPECIFIED"), (1, "EUCLIDEAN"), (2, "COSINE"), (3, "DOT_PRODUCT"),
            ]
        }

        package var vectorField: StructuredQueryMessage.FieldReference?
        package var queryVector: Value?
        package var distanceMeasure: DistanceMeasure
        package var limit: Int32?
        package var distanceResultField: String
        package var distanceThreshold: Double?

        package init() {
            self.init(vectorField: nil)
        }

        package init(
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

        package static let typeName = "google.firestore.v1.StructuredQuery.FindNearest"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "vector_field", &vectorField)
            try visitor.value(2, "query_vector", &queryVector)
            try visitor.enumeration(3, "distance_measure", &distanceMeasure)
            try visitor.int32Value(4, "limit", &limit)
            try visitor.string(5, "distance_result_field", &distanceResultField)
            try visitor.doubleValue(6, "distance_threshold", &distanceThreshold)
        }
    }

    package var select: Projection?
    package var from: [CollectionSelector]
    package var `where`: Filter?
    package var orderBy: [Order]
    package var startAt: CursorMessage?
    package var endAt: CursorMessage?
    package var offset: Int32
    package var limit: Int32?
    package var findNearest: FindNearest?

    package init() {
        self.init(select: nil)
    }

    package init(
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

    package static let typeName = "google.firestore.v1.StructuredQuery"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
