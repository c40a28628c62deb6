import HearthHost
import HearthModel
import HearthDocuments
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
            let judge: ReadJudge = { reader throws(Status) in
                try self.access.list(query.query, call.identity, reader)
            }
            try read(call, database, consistency, [.query(query)], judge: judge) { grant throws(Status) in
                let source = try QuerySource(
                    query, grant, database: database, explain: explain.map { $0.analyze ? .analyze : .plan } ?? .off,
                    requireIndexes: self.options.requireIndexes, format: call.format, cancellation: call.cancellation,
                    memory: self.memory.sorting.reservation(for: call.requester))
                MessageStream(source, to: call, pool: self.pool, reads: self.longReads).start()
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
            let judge: ReadJudge = { reader throws(Status) in
                try self.access.list(query, call.identity, reader)
            }
            try read(call, database, consistency, [.query(normalized)], judge: judge) { grant throws(Status) in
                let transaction = grant.newTransaction ?? []
                let memory = self.memory.sorting.reservation(for: call.requester)
                // An analyzed query counts what it reads.
                let cost: ReadCost = explain?.analyze ?? false ? .large : .unknown
                try self.run(call, database, cost, grant) { view, pace throws(Status) in
                    let started = deadline.clock.monotonicNanoseconds()
                    let meter = WorkMeter(memory: memory) { () throws(Status) in
                        try call.cancellation.check()
                        try deadline.check()
                    }
                    pace.set(meter)
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
            try access.requireAdministrator(call.identity, of: .database(parent.database), .reads)
            let normalized = try NormalizedQuery(query)
            let consistency = try Self.consistency(readTime: request.readTime)
            let fingerprint = PageToken.fingerprint(["partitions", parent.string, "\(query.scope)"])
            let token = try PageToken(request.pageToken, fingerprint: fingerprint)
            guard
                let database = try self.database(
                    parent.database, for: call, again: { self.partitionQuery(request, call) })
            else { return }
            try read(call, database, consistency, []) {
                grant throws(Status) in
                try self.run(call, database, .large, grant) { view, _ throws(Status) in
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
                            .string(fingerprint: fingerprint)
                    }
                    return call.format.encode(response)
                }
            }
        }
    }
}
