import HearthModel

/// google.firestore.v1.StructuredAggregationQuery
package struct StructuredAggregationQueryMessage: WireMessage {
    package struct Aggregation: WireMessage {
        package struct Count: WireMessage {
            package var upTo: Int64?

            package init() {
                self.init(upTo: nil)
            }

            package init(upTo: Int64? = nil) {
                self.upTo = upTo
            }

            package static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Count"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.int64Value(1, "up_to", &upTo)
            }
        }

        package struct Sum: WireMessage {
            package var field: StructuredQueryMessage.FieldReference?

            package init() {
                self.init(field: nil)
            }

            package init(field: StructuredQueryMessage.FieldReference? = nil) {
                self.field = field
            }

            package static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Sum"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.message(1, "field", &field)
            }
        }

        package struct Avg: WireMessage {
            package var field: StructuredQueryMessage.FieldReference?

            package init() {
                self.init(field: nil)
            }

            package init(field: StructuredQueryMessage.FieldReference? = nil) {
                self.field = field
            }

            package static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation.Avg"

            package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
                try visitor.message(1, "field", &field)
            }
        }

        package var count: Count?
        package var sum: Sum?
        package var avg: Avg?
        package var alias: String

        package init() {
            self.init(count: nil)
        }

        package init(count: Count? = nil, sum: Sum? = nil, avg: Avg? = nil, alias: String = "") {
            self.count = count
            self.sum = sum
            self.avg = avg
            self.alias = alias
        }

        package static let typeName = "google.firestore.v1.StructuredAggregationQuery.Aggregation"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(1, "count", oneof: "operator", &count)
            try visitor.message(2, "sum", oneof: "operator", &sum)
            try visitor.message(3, "avg", oneof: "operator", &avg)
            try visitor.string(7, "alias", &alias)
        }
    }

    package var structuredQuery: StructuredQueryMessage?
    package var aggregations: [Aggregation]

    package init() {
        self.init(structuredQuery: nil)
    }

    package init(structuredQuery: StructuredQueryMessage? = nil, aggregations: [Aggregation] = []) {
        self.structuredQuery = structuredQuery
        self.aggregations = aggregations
    }

    package static let typeName = "google.firestore.v1.StructuredAggregationQuery"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "structured_query", oneof: "query_type", &structuredQuery)
        try visitor.messages(3, "aggregations", &aggregations)
    }
}

/// google.firestore.v1.AggregationResult
package struct AggregationResultMessage: WireMessage {
    package var aggregateFields: MapValue

    package init() {
        self.init(aggregateFields: MapValue())
    }

    package init(aggregateFields: MapValue = MapValue()) {
        self.aggregateFields = aggregateFields
    }

    package static let typeName = "google.firestore.v1.AggregationResult"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.fields(2, "aggregate_fields", &aggregateFields)
    }

    package mutating func decode(_ decoder: inout BinaryFieldDecoder) throws(Status) {
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
package struct RunAggregationQueryRequest: WireMessage {
    package var parent: String
    package var structuredAggregationQuery: StructuredAggregationQueryMessage?
    package var transaction: [UInt8]?
    package var newTransaction: TransactionOptionsMessage?
    package var readTime: TimestampMessage?
    package var explainOptions: ExplainOptionsMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(parent: "")
    }

    package init(
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

    package static let typeName = "google.firestore.v1.RunAggregationQueryRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
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
package struct RunAggregationQueryResponse: WireMessage {
    package var result: AggregationResultMessage?
    package var transaction: [UInt8]
    package var readTime: TimestampMessage?
    package var explainMetrics: ExplainMetricsMessage?

    package init() {
        self.init(result: nil)
    }

    package init(
        result: AggregationResultMessage? = nil, transaction: [UInt8] = [], readTime: TimestampMessage? = nil,
        explainMetrics: ExplainMetricsMessage? = nil
    ) {
        self.result = result
        self.transaction = transaction
        self.readTime = readTime
        self.explainMetrics = explainMetrics
    }

    package static let typeName = "google.firestore.v1.RunAggregationQueryResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "result", &result)
        try visitor.bytes(2, "transaction", &transaction)
        try visitor.message(3, "read_time", &readTime)
        try visitor.message(10, "explain_metrics", &explainMetrics)
    }
}
