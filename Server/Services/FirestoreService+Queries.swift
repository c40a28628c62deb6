import HearthModel
import HearthStorage
import HearthWire

/// RunQuery, RunAggregationQuery, PartitionQuery.
extension FirestoreService {
    func runQuery(_ request: RunQueryRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let parent = try ResourceName(parent: request.parent)
            guard let message = request.structuredQuery else {
                throw .invalidArgument("'structured_query' must be set on a query request.")
            }
            let query = try NormalizedQuery(try message.query(parent: parent))
            let consistency = try Self.consistency(
                transaction: request.transaction, newTransaction: request.newTransaction, readTime: request.readTime)
            guard
                let database = try self.database(parent.database, for: call, again: { self.runQuery(request, call) })
            else { return }
            let explain = request.explainOptions
            let judge: @Sendable (ReadView) throws(Status) -> Void = { view throws(Status) in
                try self.access.list(query.query, call.identity, view)
            }
            read(call, database, consistency, [.query(query)], judge: judge) { grant throws(Status) in
                let source = try QuerySource(
                    query, grant, database: database, explain: explain.map { $0.analyze ? .analyze : .plan } ?? .off,
                    requireIndexes: self.options.requireIndexes, format: call.format, cancellation: call.cancellation)
                MessageStream(source, to: call, pool: self.pool).start()
            }
        }
    }

    func runAggregationQuery(_ request: RunAggregationQueryRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let parent = try ResourceName(parent: request.parent)
            guard let message = request.structuredAggregationQuery else {
                throw .invalidArgument("'structured_aggregation_query' must be set on an aggregation query request.")
            }
            let query = try message.query(parent: parent)
            let aggregations = try message.modelAggregations()
            let normalized = try AggregationExecution.normalize(query, aggregations)
            let consistency = try Self.consistency(
                transaction: request.transaction, newTransaction: request.newTransaction, readTime: request.readTime)
            let requireIndexes = options.requireIndexes
            let explain = request.explainOptions
            let deadline = QueryDeadline()
            guard
                let database = try self.database(
                    parent.database, for: call, again: { self.runAggregationQuery(request, call) })
            else { return }
            let judge: @Sendable (ReadView) throws(Status) -> Void = { view throws(Status) in
                try self.access.list(query, call.identity, view)
            }
            read(call, database, consistency, [.query(normalized)], judge: judge) { grant throws(Status) in
                let transaction = grant.newTransaction ?? []
                self.run(call, requirePool: true, grant) { view throws(Status) in
                    let started = deadline.clock.monotonicNanoseconds()
                    let meter = WorkMeter { () throws(Status) in
                        try call.cancellation.check()
                        try deadline.check()
                    }
                    let execution = try AggregationExecution(
                        query, aggregations, view: view, meter: meter, requireIndexes: requireIndexes)
                    var response = RunAggregationQueryResponse()
                    response.transaction = transaction
                    if explain == nil || explain!.analyze {
                        let results = try execution.run()
                        response.readTime = TimestampMessage(view.readTime)
                        response.result = AggregationResultMessage(
                            aggregateFields: MapValue(results.map { MapValue.Field(name: $0.alias, value: $0.value) }))
                    }
                    if let explain {
                        response.explainMetrics = ExplainMetricsMessage(
                            planSummary: Explain.planSummary(execution.indexesUsed),
                            executionStats: explain.analyze
                                ? Explain.statistics(
                                    results: 1, meter: meter,
                                    nanoseconds: deadline.clock.monotonicNanoseconds() - started) : nil)
                    }
                    return call.format.encode(response)
                }
            }
        }
    }

    func partitionQuery(_ request: PartitionQueryRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let parent = try ResourceName(parent: request.parent)
            guard let message = request.structuredQuery else {
                throw .invalidArgument("'structured_query' must be set on a partition query request.")
            }
            if request.partitionCount <= 0 { throw .invalidArgument("partition_count must be a positive number.") }
            if request.pageSize < 0 { throw .invalidArgument("page_size must be greater than or equal to zero.") }
            let query = try message.query(parent: parent)
            guard case .collectionGroup = query.scope, query.filter == nil, query.offset == 0, query.limit == nil,
                query.orders.allSatisfy({ $0.field.isDocumentName && !$0.descending })
            else {
                throw .invalidArgument(
                    "A partition query must be a collection group query without filters, ordered by __name__ ascending."
                )
            }
            try access.requireAdministrator(call.identity, of: parent.database)
            let normalized = try NormalizedQuery(query)
            let consistency = try Self.consistency(readTime: request.readTime)
            let fingerprint = PageToken.fingerprint(["partitions", parent.text, "\(query.scope)"])
            let token = try PageToken(request.pageToken, fingerprint: fingerprint)
            guard
                let database = try self.database(
                    parent.database, for: call, again: { self.partitionQuery(request, call) })
            else { return }
            read(call, database, consistency, []) {
                grant throws(Status) in
                self.run(call, requirePool: true, grant) { view throws(Status) in
                    let cuts = try Partitions.cuts(
                        normalized, count: Int(clamping: request.partitionCount), view: view)
                    var names = DocumentNames(parent.database)
                    var rest = cuts[...]
                    if let token { rest = cuts.drop { UTF8Order.compare($0, token.position) <= 0 } }
                    let page = request.pageSize == 0 ? rest : rest.prefix(Int(request.pageSize))
                    var response = PartitionQueryResponse()
                    for key in page {
                        response.partitions.append(
                            CursorMessage(values: [.reference(try names.name(key: key))], before: true))
                    }
                    if page.count < rest.count, let last = page.last {
                        response.nextPageToken = PageToken(readTime: view.readTime, position: last)
                            .text(fingerprint: fingerprint)
                    }
                    return call.format.encode(response)
                }
            }
        }
    }
}

/// The time that a query may take.
struct QueryDeadline: Sendable {
    let clock = SystemClock()
    private let end: UInt64

    init() {
        end = clock.monotonicNanoseconds() + UInt64(Limits.queryTimeSecondsMax) * 1_000_000_000
    }

    func check() throws(Status) {
        if clock.monotonicNanoseconds() > end {
            throw Status(
                .deadlineExceeded,
                "The query timed out. Please try either limiting the entities scanned, or run with an updated index "
                    + "configuration.")
        }
    }
}

/// The answers of a RunQuery.
private final class QuerySource: MessageSource {
    enum ExplainMode {
        case off
        case plan
        case analyze
    }

    private let database: Database
    private let query: NormalizedQuery
    private let readTime: Timestamp
    private let explain: ExplainMode
    private let requireIndexes: Bool
    private let format: MessageFormat
    private let projection: Projection?
    private let resultField: FieldPath?
    private var names: DocumentNames
    private let meter: WorkMeter
    private let clock = SystemClock()
    private let started: UInt64
    private var execution: QueryExecution?
    private var transaction: [UInt8]
    private var hasReportedSkips = false
    private var hasSentReadTime = false
    private var isOver = false
    private var lookahead: QueryResult?
    private var returned = 0
    /// The last result that was given out, while the query runs.
    private var last: QueryResult?
    /// Where a suspended query goes on.
    private var lastPosition: [UInt8]?

    init(
        _ query: NormalizedQuery, _ grant: Database.ViewGrant, database: Database, explain: ExplainMode,
        requireIndexes: Bool, format: MessageFormat, cancellation: Cancellation
    ) throws(Status) {
        self.database = database
        self.query = query
        self.explain = explain
        self.requireIndexes = requireIndexes
        self.format = format
        readTime = grant.view.readTime
        transaction = grant.newTransaction ?? []
        projection = query.query.projection.map { Projection($0) }
        resultField = query.query.findNearest?.resultField
        names = DocumentNames(query.query.parent.database)
        started = clock.monotonicNanoseconds()
        let deadline = QueryDeadline()
        meter = WorkMeter { () throws(Status) in
            try cancellation.check()
            try deadline.check()
        }
        execution = try QueryExecution(query, view: grant.view, meter: meter, requireIndexes: requireIndexes)
        isLight = execution!.isLight
        indexesUsed = execution!.indexesUsed
    }

    let isLight: Bool
    private let indexesUsed: [QueryExecution.IndexUse]

    func suspend() {
        // Sorted and nearest results would have to be found again from the start; they hold keys and no more.
        guard isLight, explain == .off, execution != nil else { return }
        do throws(Status) {
            // A position is smaller than a document.
            if let last { lastPosition = try query.position(of: last) }
        } catch {
            // The document is damaged. The query keeps its snapshot and goes on from it.
            return
        }
        last = nil
        execution = nil
    }

    private func present() throws(Status) -> QueryExecution {
        if let execution { return execution }
        let view = try database.pastView(at: readTime)
        let remaining = query.query.limit.map { $0 - returned }
        let rest = lastPosition.map { query.continued(after: $0, remaining: remaining, offset: 0) } ?? query
        let resumed = try QueryExecution(rest, view: view, meter: meter)
        execution = resumed
        return resumed
    }

    func next() throws(Status) -> [UInt8]? {
        if isOver { return nil }
        if explain == .plan {
            isOver = true
            return format.encode(
                RunQueryResponse(
                    transaction: transaction,
                    explainMetrics: ExplainMetricsMessage(planSummary: Explain.planSummary(indexesUsed))))
        }
        if !transaction.isEmpty {
            defer { transaction = [] }
            return format.encode(RunQueryResponse(transaction: transaction))
        }
        let execution = try present()
        let result = try takeResult(execution)
        if execution.skippedResults > 0, !hasReportedSkips {
            hasReportedSkips = true
            hasSentReadTime = true
            lookahead = result
            if result == nil, explain == .off { isOver = true }
            return format.encode(
                RunQueryResponse(
                    readTime: TimestampMessage(readTime), skippedResults: Int32(clamping: execution.skippedResults)))
        }
        guard let result else { return end() }
        returned += 1
        return try encode(result, execution)
    }

    private func takeResult(_ execution: QueryExecution) throws(Status) -> QueryResult? {
        if let result = lookahead {
            lookahead = nil
            return result
        }
        return try execution.next()
    }

    /// A query always answers with a read time at least once.
    private func end() -> [UInt8]? {
        isOver = true
        if hasSentReadTime, explain == .off { return nil }
        return format.encode(
            RunQueryResponse(
                readTime: TimestampMessage(readTime), explainMetrics: explain == .analyze ? metrics() : nil))
    }

    private func metrics() -> ExplainMetricsMessage {
        ExplainMetricsMessage(
            planSummary: Explain.planSummary(indexesUsed),
            executionStats: Explain.statistics(
                results: returned, meter: meter, nanoseconds: clock.monotonicNanoseconds() - started))
    }

    private func encode(_ result: QueryResult, _ execution: QueryExecution) throws(Status) -> [UInt8] {
        hasSentReadTime = true
        if isLight { last = result }
        var document = result.document.encoded(name: try names.name(key: result.key))
        if let resultField, let distance = result.distance {
            var fields = try FieldsCodec.decode(document.fields)
            fields.set(resultField, .double(distance))
            document.fields = FieldsCodec.encode(fields)
        }
        if let projection { document.fields = try projection.apply(to: document.fields) }
        var metrics: ExplainMetricsMessage?
        if explain == .analyze {
            // The metrics ride on the last document, so one has to look ahead.
            lookahead = try execution.next()
            if lookahead == nil {
                metrics = self.metrics()
                isOver = true
            }
        }
        switch format {
        case .protobuf:
            var writer = ProtobufWriter()
            writer.runQueryResponse(document, readTime: readTime, explainMetrics: metrics)
            return writer.bytes
        case .json(let options):
            var writer = JSONWriter()
            try writer.runQueryResponse(document, readTime: readTime, explainMetrics: metrics, options: options)
            return writer.bytes
        }
    }
}

/// What explain tells of a query. Source: google/firestore/v1/query_profile.proto.
enum Explain {
    static func planSummary(_ indexes: [QueryExecution.IndexUse]) -> PlanSummaryMessage {
        PlanSummaryMessage(
            indexesUsed: indexes.map { index in
                StructMessage([
                    ("query_scope", .string(index.isGroupScope ? "Collection group" : "Collection")),
                    ("properties", .string(index.properties)),
                ])
            })
    }

    static func statistics(results: Int, meter: WorkMeter, nanoseconds: UInt64) -> ExecutionStatsMessage {
        let reads = max(1, results)
        return ExecutionStatsMessage(
            resultsReturned: Int64(results),
            executionDuration: DurationMessage(
                seconds: Int64(nanoseconds / 1_000_000_000), nanos: Int32(max(1, nanoseconds % 1_000_000_000))),
            readOperations: Int64(reads),
            debugStats: StructMessage([
                ("index_entries_scanned", .string(String(meter.entriesScanned))),
                ("documents_scanned", .string(String(meter.documentsRead))),
                (
                    "billing_details",
                    .object(
                        StructMessage([
                            ("documents_billable", .string(String(results))),
                            ("index_entries_billable", .string("0")),
                            ("small_ops", .string("0")),
                            ("min_query_cost", .string(results == 0 ? "1" : "0")),
                        ]))
                ),
            ]))
    }
}
