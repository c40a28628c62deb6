import HearthModel

/// google.firestore.v1.StructuredAggregationQuery
public struct StructuredAggregationQueryMessage: WireMessage {
    public struct Aggregation: WireMessage {
        public struct Count: WireMessage {
            public var upTo: Int64?

            public init() {
                self.init(upTo: nil)
            }

            public init(upTo: Int64? = nil) {
                self.upTo = upTo
            }

            public static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Count"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.int64Value(1, "up_to", &upTo)
            }
        }

        public struct Sum: WireMessage {
            public var field: StructuredQueryMessage.FieldReference?

            public init() {
                self.init(field: nil)
            }

            public init(field: StructuredQueryMessage.FieldReference? = nil) {
                self.field = field
            }

            public static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Sum"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.message(1, "field", &field)
            }
        }

        public struct Avg: WireMessage {
            public var field: StructuredQueryMessage.FieldReference?

            public init() {
                self.init(field: nil)
            }

            public init(field: StructuredQueryMessage.FieldReference? = nil) {
                self.field = field
            }

            public static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Avg"

            public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.message(1, "field", &field)
            }
        }

        public var count: Count?
        public var sum: Sum?
        public var avg: Avg?
        public var alias: String

        public init() {
            self.init(count: nil)
        }

        public init(count: Count? = nil, sum: Sum? = nil, avg: Avg? = nil, alias: String = "") {
            self.count = count
            self.sum = sum
            self.avg = avg
            self.alias = alias
        }

        public static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "count", oneof: "operator", &count)
            try visitor.message(2, "sum", oneof: "operator", &sum)
            try visitor.message(3, "avg", oneof: "operator", &avg)
            try visitor.string(7, "alias", &alias)
        }
    }

    public var structuredQuery: StructuredQueryMessage?
    public var aggregations: [Aggregation]

    public init() {
        self.init(structuredQuery: nil)
    }

    public init(structuredQuery: StructuredQueryMessage? = nil, aggregations: [Aggregation] = []) {
        self.structuredQuery = structuredQuery
        self.aggregations = aggregations
    }

    public static let typeName = "google.firestore.v1.StructuredAggregationQuery"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "structured_query", oneof: "query_type", &structuredQuery)
        try visitor.messages(3, "aggregations", &aggregations)
    }
}

/// google.firestore.v1.AggregationResult
public struct AggregationResultMessage: WireMessage {
    public var aggregateFields: MapValue

    public init() {
        self.init(aggregateFields: MapValue())
    }

    public init(aggregateFields: MapValue = MapValue()) {
        self.aggregateFields = aggregateFields
    }

    public static let typeName = "google.firestore.v1.AggregationResult"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.fields(2, "aggregate_fields", &aggregateFields)
    }

    public mutating func decode(_ decoder: inout BinaryFieldDecoder) throws(Status) {
        var builder = MapBuilder(aggregateFields)
        aggregateFields = MapValue()
        while try decoder.readFields(2, into: &builder) {
            try visit(&decoder)
            try decoder.endField()
        }
        aggregateFields = builder.take()
    }
}

/// google.firestore.v1.RunAggregationQueryRequest
public struct RunAggregationQueryRequest: WireMessage {
    public var parent: String
    public var structuredAggregationQuery: StructuredAggregationQueryMessage?
    public var transaction: [UInt8]?
    public var newTransaction: TransactionOptionsMessage?
    public var readTime: TimestampMessage?
    public var explainOptions: ExplainOptionsMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(parent: "")
    }

    public init(
        parent: String = "", structuredAggregationQuery: StructuredAggregationQueryMessage? = nil,
        transaction: [UInt8]? = nil, newTransaction: TransactionOptionsMessage? = nil,
        readTime: TimestampMessage? = nil, explainOptions: ExplainOptionsMessage? = nil,
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.parent = parent
        self.structuredAggregationQuery = structuredAggregationQuery
        self.transaction = transaction
        self.newTransaction = newTransaction
        self.readTime = readTime
        self.explainOptions = explainOptions
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.RunAggregationQueryRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "structured_aggregation_query", oneof: "query_type", &structuredAggregationQuery)
        try visitor.bytes(4, "transaction", oneof: "consistency_selector", &transaction)
        try visitor.message(5, "new_transaction", oneof: "consistency_selector", &newTransaction)
        try visitor.message(6, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(8, "explain_options", &explainOptions)
        try visitor.message(9, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.RunAggregationQueryResponse
public struct RunAggregationQueryResponse: WireMessage {
    public var result: AggregationResultMessage?
    public var transaction: [UInt8]
    public var readTime: TimestampMessage?
    public var explainMetrics: ExplainMetricsMessage?

    public init() {
        self.init(result: nil)
    }

    public init(
        result: AggregationResultMessage? = nil, transaction: [UInt8] = [], readTime: TimestampMessage? = nil,
        explainMetrics: ExplainMetricsMessage? = nil
    ) {
        self.result = result
        self.transaction = transaction
        self.readTime = readTime
        self.explainMetrics = explainMetrics
    }

    public static let typeName = "google.firestore.v1.RunAggregationQueryResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "result", &result)
        try visitor.bytes(2, "transaction", &transaction)
        try visitor.message(3, "read_time", &readTime)
        try visitor.message(10, "explain_metrics", &explainMetrics)
    }
}
