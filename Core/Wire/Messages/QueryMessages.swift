import HearthModel

/// google.firestore.v1.RunQueryRequest
package struct RunQueryRequest: WireMessage {
    package var parent: String
    package var structuredQuery: StructuredQueryMessage?
    package var transaction: [UInt8]?
    package var newTransaction: TransactionOptionsMessage?
    package var readTime: TimestampMessage?
    package var explainOptions: ExplainOptionsMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(parent: "")
    }

    package init(
        parent: String = "", structuredQuery: StructuredQueryMessage? = nil, transaction: [UInt8]? = nil,
        newTransaction: TransactionOptionsMessage? = nil, readTime: TimestampMessage? = nil,
        explainOptions: ExplainOptionsMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.parent = parent
        self.structuredQuery = structuredQuery
        self.transaction = transaction
        self.newTransaction = newTransaction
        self.readTime = readTime
        self.explainOptions = explainOptions
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.RunQueryRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "structured_query", oneof: "query_type", &structuredQuery)
        try visitor.bytes(5, "transaction", oneof: "consistency_selector", &transaction)
        try visitor.message(6, "new_transaction", oneof: "consistency_selector", &newTransaction)
        try visitor.message(7, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(10, "explain_options", &explainOptions)
        try visitor.message(11, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.RunQueryResponse
package struct RunQueryResponse: WireMessage {
    package var transaction: [UInt8]
    package var document: DocumentMessage?
    package var readTime: TimestampMessage?
    package var skippedResults: Int32
    package var done: Bool?
    package var explainMetrics: ExplainMetricsMessage?

    package init() {
        self.init(transaction: [])
    }

    package init(
        transaction: [UInt8] = [], document: DocumentMessage? = nil, readTime: TimestampMessage? = nil,
        skippedResults: Int32 = 0, done: Bool? = nil, explainMetrics: ExplainMetricsMessage? = nil
    ) {
        self.transaction = transaction
        self.document = document
        self.readTime = readTime
        self.skippedResults = skippedResults
        self.done = done
        self.explainMetrics = explainMetrics
    }

    package static let typeName = "google.firestore.v1.RunQueryResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "document", &document)
        try visitor.bytes(2, "transaction", &transaction)
        try visitor.message(3, "read_time", &readTime)
        try visitor.int32(4, "skipped_results", &skippedResults)
        try visitor.bool(6, "done", oneof: "continuation_selector", &done)
        try visitor.message(11, "explain_metrics", &explainMetrics)
    }
}

/// google.firestore.v1.PartitionQueryRequest
package struct PartitionQueryRequest: WireMessage {
    package var parent: String
    package var structuredQuery: StructuredQueryMessage?
    package var partitionCount: Int64
    package var pageToken: String
    package var pageSize: Int32
    package var readTime: TimestampMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(parent: "")
    }

    package init(
        parent: String = "", structuredQuery: StructuredQueryMessage? = nil, partitionCount: Int64 = 0,
        pageToken: String = "", pageSize: Int32 = 0, readTime: TimestampMessage? = nil,
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.parent = parent
        self.structuredQuery = structuredQuery
        self.partitionCount = partitionCount
        self.pageToken = pageToken
        self.pageSize = pageSize
        self.readTime = readTime
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.PartitionQueryRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "parent", &parent)
        try visitor.message(2, "structured_query", oneof: "query_type", &structuredQuery)
        try visitor.int64(3, "partition_count", &partitionCount)
        try visitor.string(4, "page_token", &pageToken)
        try visitor.int32(5, "page_size", &pageSize)
        try visitor.message(6, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.message(7, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.PartitionQueryResponse
package struct PartitionQueryResponse: WireMessage {
    package var partitions: [CursorMessage]
    package var nextPageToken: String

    package init() {
        self.init(partitions: [])
    }

    package init(partitions: [CursorMessage] = [], nextPageToken: String = "") {
        self.partitions = partitions
        self.nextPageToken = nextPageToken
    }

    package static let typeName = "google.firestore.v1.PartitionQueryResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "partitions", &partitions)
        try visitor.string(2, "next_page_token", &nextPageToken)
    }
}

/// google.firestore.v1.ExecutePipelineRequest
package struct ExecutePipelineRequest: WireMessage {
    package var database: String
    package var structuredPipeline: Bool
    package var transaction: [UInt8]?
    package var newTransaction: TransactionOptionsMessage?
    package var readTime: TimestampMessage?
    package var autoCommitTransaction: Bool
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(
        database: String = "", structuredPipeline: Bool = false, transaction: [UInt8]? = nil,
        newTransaction: TransactionOptionsMessage? = nil, readTime: TimestampMessage? = nil,
        autoCommitTransaction: Bool = false, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.structuredPipeline = structuredPipeline
        self.transaction = transaction
        self.newTransaction = newTransaction
        self.readTime = readTime
        self.autoCommitTransaction = autoCommitTransaction
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.ExecutePipelineRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.presence(2, "structured_pipeline", oneof: "pipeline_type", &structuredPipeline)
        try visitor.bytes(5, "transaction", oneof: "consistency_selector", &transaction)
        try visitor.message(6, "new_transaction", oneof: "consistency_selector", &newTransaction)
        try visitor.message(7, "read_time", oneof: "consistency_selector", &readTime)
        try visitor.bool(9, "auto_commit_transaction", &autoCommitTransaction)
        try visitor.message(10, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.ExecutePipelineResponse
package struct ExecutePipelineResponse: WireMessage {
    package var transaction: [UInt8]
    package var results: [DocumentMessage]
    package var executionTime: TimestampMessage?
    package var explainStats: ExplainStatsMessage?

    package init() {
        self.init(transaction: [])
    }

    package init(
        transaction: [UInt8] = [], results: [DocumentMessage] = [], executionTime: TimestampMessage? = nil,
        explainStats: ExplainStatsMessage? = nil
    ) {
        self.transaction = transaction
        self.results = results
        self.executionTime = executionTime
        self.explainStats = explainStats
    }

    package static let typeName = "google.firestore.v1.ExecutePipelineResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "transaction", &transaction)
        try visitor.messages(2, "results", &results)
        try visitor.message(3, "execution_time", &executionTime)
        try visitor.message(4, "explain_stats", &explainStats)
    }
}
