import HearthModel

/// google.firestore.v1.ExplainOptions
public struct ExplainOptionsMessage: WireMessage {
    public var analyze: Bool

    public init() {
        self.init(analyze: false)
    }

    public init(analyze: Bool = false) {
        self.analyze = analyze
    }

    public static let typeName = "google.firestore.v1.ExplainOptions"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bool(1, "analyze", &analyze)
    }
}

/// google.firestore.v1.ExplainMetrics
public struct ExplainMetricsMessage: WireMessage {
    public var planSummary: PlanSummaryMessage?
    public var executionStats: ExecutionStatsMessage?

    public init() {
        self.init(planSummary: nil)
    }

    public init(planSummary: PlanSummaryMessage? = nil, executionStats: ExecutionStatsMessage? = nil) {
        self.planSummary = planSummary
        self.executionStats = executionStats
    }

    public static let typeName = "google.firestore.v1.ExplainMetrics"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "plan_summary", &planSummary)
        try visitor.message(2, "execution_stats", &executionStats)
    }
}

/// google.firestore.v1.PlanSummary
public struct PlanSummaryMessage: WireMessage {
    public var indexesUsed: [StructMessage]

    public init() {
        self.init(indexesUsed: [])
    }

    public init(indexesUsed: [StructMessage] = []) {
        self.indexesUsed = indexesUsed
    }

    public static let typeName = "google.firestore.v1.PlanSummary"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "indexes_used", &indexesUsed)
    }
}

/// google.firestore.v1.ExecutionStats
public struct ExecutionStatsMessage: WireMessage {
    public var resultsReturned: Int64
    public var executionDuration: DurationMessage?
    public var readOperations: Int64
    public var debugStats: StructMessage?

    public init() {
        self.init(resultsReturned: 0)
    }

    public init(
        resultsReturned: Int64 = 0, executionDuration: DurationMessage? = nil, readOperations: Int64 = 0,
        debugStats: StructMessage? = nil
    ) {
        self.resultsReturned = resultsReturned
        self.executionDuration = executionDuration
        self.readOperations = readOperations
        self.debugStats = debugStats
    }

    public static let typeName = "google.firestore.v1.ExecutionStats"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int64(1, "results_returned", &resultsReturned)
        try visitor.message(3, "execution_duration", &executionDuration)
        try visitor.int64(4, "read_operations", &readOperations)
        try visitor.message(5, "debug_stats", &debugStats)
    }
}

/// google.firestore.v1.ExplainStats
public struct ExplainStatsMessage: WireMessage {
    public var data: AnyMessage?

    public init() {
        self.init(data: nil)
    }

    public init(data: AnyMessage? = nil) {
        self.data = data
    }

    public static let typeName = "google.firestore.v1.ExplainStats"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "data", &data)
    }
}
