import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// The responses of a RunQuery.
final class QuerySource: MessageSource {
    enum ExplainMode {
        case off
        case plan
        case analyze
    }

    private let readTime: Timestamp
    private let explain: ExplainMode
    private let format: MessageFormat
    private let projection: Projection?
    private let resultField: FieldPath?
    private var names: DocumentNames
    private let work: WorkMeter
    private let clock = SystemClock()
    private let started: UInt64
    private let results: SuspendableQuery
    private var transaction: [UInt8]
    private var hasReportedSkips = false
    private var hasSentReadTime = false
    private var isOver = false
    private var lookahead: QueryResult?
    private var returned = 0

    init(
        _ query: NormalizedQuery, _ grant: Database.ViewGrant, database: Database, explain: ExplainMode,
        requireIndexes: Bool, format: MessageFormat, cancellation: Cancellation, memory: MemoryReservation
    ) throws(Status) {
        self.explain = explain
        self.format = format
        readTime = grant.view.readTime
        transaction = grant.newTransaction ?? []
        projection = query.query.projection.map { Projection($0) }
        resultField = query.query.findNearest?.resultField
        names = DocumentNames(query.query.parent.database)
        started = clock.monotonicNanoseconds()
        let deadline = QueryDeadline()
        work = WorkMeter(memory: memory) { () throws(Status) in
            try cancellation.check()
            try deadline.check()
        }
        let readTime = readTime
        results = try SuspendableQuery(query, grant.view, meter: work, requireIndexes: requireIndexes) {
            read throws(Status) in try database.pastView(at: readTime, under: read)
        }
    }

    // An analyzed query reads one result ahead.
    var isLight: Bool { explain == .plan || (explain == .off && results.isLight) }
    var isPaused: Bool { results.isPaused }
    // An analyzed query counts what it reads.
    var meter: WorkMeter? { explain == .analyze ? nil : work }

    var isSuspended: Bool { results.isSuspended }
    func hold(_ read: LongRead) { results.hold(read) }
    func suspend() { results.suspend() }
    func resume(_ read: LongRead?) throws(Status) { try results.resume(read) }

    func next(onLoop: Bool, to messages: inout MessageBatch) throws(Status) -> Bool {
        if isOver { return false }
        if explain == .plan {
            isOver = true
            let metrics = ExplainMetricsMessage(planSummary: Explain.planSummary(results.indexesUsed))
            messages.append(RunQueryResponse(transaction: transaction, explainMetrics: metrics), format)
            return true
        }
        if !transaction.isEmpty {
            messages.append(RunQueryResponse(transaction: transaction), format)
            transaction = []
            return true
        }
        let result = try takeResult(onLoop: onLoop)
        if result == nil, onLoop, isPaused { return false }
        if results.skippedResults > 0, !hasReportedSkips {
            hasReportedSkips = true
            hasSentReadTime = true
            lookahead = result
            if result == nil, explain == .off { isOver = true }
            let skipped = Int32(clamping: results.skippedResults)
            messages.append(
                RunQueryResponse(readTime: TimestampMessage(readTime), skippedResults: skipped), format)
            return true
        }
        guard let result else { return end(&messages) }
        returned += 1
        try append(result, to: &messages)
        return true
    }

    private func takeResult(onLoop: Bool) throws(Status) -> QueryResult? {
        if let result = lookahead {
            lookahead = nil
            return result
        }
        return try results.next(onLoop: onLoop)
    }

    /// A query always returns a read time at least once.
    private func end(_ messages: inout MessageBatch) -> Bool {
        isOver = true
        if hasSentReadTime, explain == .off { return false }
        let metrics = explain == .analyze ? metrics() : nil
        messages.append(RunQueryResponse(readTime: TimestampMessage(readTime), explainMetrics: metrics), format)
        return true
    }

    private func metrics() -> ExplainMetricsMessage {
        ExplainMetricsMessage(
            planSummary: Explain.planSummary(results.indexesUsed),
            executionStats: Explain.statistics(
                results: returned, meter: work, nanoseconds: clock.monotonicNanoseconds() - started))
    }

    private func append(_ result: QueryResult, to messages: inout MessageBatch) throws(Status) {
        hasSentReadTime = true
        try names.find(result.key)
        var document = result.document.encoded(name: format.isJSON ? names.found : "")
        if let resultField, let distance = result.distance {
            var fields = try FieldsCodec.decode(document.fields)
            fields.set(resultField, .double(distance))
            document.fields = FieldsCodec.encode(fields)
        }
        if let projection { document.fields = try projection.apply(to: document.fields) }
        var metrics: ExplainMetricsMessage?
        if explain == .analyze {
            // The metrics are sent with the last document, so the next result must be read first.
            lookahead = try results.next()
            if lookahead == nil {
                metrics = self.metrics()
                isOver = true
            }
        }
        switch format {
        case .protobuf:
            var writer = ProtobufWriter(messages.begin())
            writer.runQueryResponse(document, name: names.utf8, readTime: readTime, explainMetrics: metrics)
            messages.end(&writer.bytes)
        case .json(let options):
            var writer = JSONWriter()
            try writer.runQueryResponse(document, readTime: readTime, explainMetrics: metrics, options: options)
            messages.append(writer.bytes)
        }
    }
}
