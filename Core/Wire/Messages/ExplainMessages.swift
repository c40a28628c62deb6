import HearthModel

/// google.firestore.v1.ExplainOptions
package struct ExplainOptionsMessage: WireMessage {
    package var analyze: Bool

    package init() {
        self.init(analyze: false)
    }

    package init(analyze: Bool = false) {
        self.analyze = analyze
    }

    package static let typeName = "google.firestore.v1.ExplainOptions"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bool(1, "analyze", &analyze)
    }
}

/// google.firestore.v1.ExplainMetrics
package struct ExplainMetricsMessage: WireMessage {
    package var planSummary: PlanSummaryMessage?
    package var executionStats: ExecutionStatsMessage?

    package init() {
        self.init(planSummary: nil)
    }

    package init(planSummary: PlanSummaryMessage? = nil, executionStats: ExecutionStatsMessage? = nil) {
        self.planSummary = planSummary
        self.executionStats = executionStats
    }

    package static let typeName = "google.firestore.v1.ExplainMetrics"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "plan_summary", &planSummary)
        try visitor.message(2, "execution_stats", &executionStats)
    }
}

/// google.firestore.v1.PlanSummary
package struct PlanSummaryMessage: WireMessage {
    package var indexesUsed: [StructMessage]

    package init() {
        self.init(indexesUsed: [])
    }

    package init(indexesUsed: [StructMessage] = []) {
        self.indexesUsed = indexesUsed
    }

    package static let typeName = "google.firestore.v1.PlanSummary"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "indexes_used", &indexesUsed)
    }
}

/// google.firestore.v1.ExecutionStats
package struct ExecutionStatsMessage: WireMessage {
    package var resultsReturned: Int64
    package var executionDuration: DurationMessage?
    package var readOperations: Int64
    package var debugStats: StructMessage?

    package init() {
        self.init(resultsReturned: 0)
    }

    package init(
        resultsReturned: Int64 = 0, executionDuration: DurationMessage? = nil, readOperations: Int64 = 0,
        debugStats: StructMessage? = nil
    ) {
        self.resultsReturned = resultsReturned
        self.executionDuration = executionDuration
        self.readOperations = readOperations
        self.debugStats = debugStats
    }

    package static let typeName = "google.firestore.v1.ExecutionStats"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int64(1, "results_returned", &resultsReturned)
        try visitor.message(3, "execution_duration", &executionDuration)
        try visitor.int64(4, "read_operations", &readOperations)
        try visitor.message(5, "debug_stats", &debugStats)
    }
}

/// google.firestore.v1.ExplainStats
package struct ExplainStatsMessage: WireMessage {
    package var data: AnyMessage?

    package init() {
        self.init(data: nil)
    }

    package init(data: AnyMessage? = nil) {
        self.data = data
    }

    package static let typeName = "google.firestore.v1.ExplainStats"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "data", &data)
    }
}
