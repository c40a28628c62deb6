import HearthConcurrency
import HearthModel
import HearthWire

/// Calls that go to the server and bypass the cache, for transactions and aggregations.
struct RemoteCalls: Sendable {
    private let core: SyncCore

    init(_ core: SyncCore) { self.core = core }

    /// Found documents and missing ones, in the order of the keys.
    func lookUp(_ keys: [ResourcePath]) async throws(Status) -> [ClientDocument] {
        let database = core.database
        let names = keys.map { ResourceName(database: database, path: $0).string }
        let request = BatchGetDocumentsRequest(database: database.string, documents: names)
        let responses = try await call { headers throws(Status) in
            try await core.datastore.batchGetDocuments(request, headers: headers)
        }
        var documents: [ResourcePath: ClientDocument] = [:]
        for response in responses {
            if let found = response.found {
                let key = try ResourceName(document: found.name, in: database).path
                documents[key] = try ClientDocument(found, key: key)
            } else if let missing = response.missing {
                let key = try ResourceName(document: missing, in: database).path
                documents[key] = ClientDocument(
                    key: key, kind: .missing, version: try response.readTime?.timestamp() ?? .none)
            }
        }
        var result: [ClientDocument] = []
        for key in keys {
            guard let document = documents[key] else {
                throw .internalError("The server did not answer for the document \(key.string).")
            }
            result.append(document)
        }
        return result
    }

    func commit(_ mutations: [Mutation]) async throws(Status) {
        let serializer = MutationSerializer(database: core.database)
        let request = CommitRequest(database: core.database.string, writes: mutations.map { serializer.message($0) })
        try MutationSerializer.checkSize(request)
        _ = try await call { headers throws(Status) in try await core.datastore.commit(request, headers: headers) }
    }

    /// The results under the callers' aliases. The request contains each aggregation once, under our own short aliases.
    func aggregate(_ query: ClientQuery, _ aggregations: [Aggregation]) async throws(Status) -> [String: Value] {
        try await requireNetwork()
        var distinct: [Aggregation] = []
        var aliases: [String: String] = [:]
        for aggregation in aggregations {
            let same = distinct.first { $0.operator == aggregation.operator }
            let alias = same?.alias ?? "aggregation_\(distinct.count)"
            if same == nil { distinct.append(Aggregation(alias: alias, operator: aggregation.operator)) }
            aliases[aggregation.alias] = alias
        }
        let modelQuery = core.serializer.query(query.aggregationTarget)
        let request = RunAggregationQueryRequest(
            parent: modelQuery.parent.string,
            structuredAggregationQuery: StructuredAggregationQueryMessage(modelQuery, distinct))
        let responses = try await call { headers throws(Status) in
            try await core.datastore.runAggregationQuery(request, headers: headers)
        }
        guard let fields = responses.lazy.compactMap(\.result).first?.aggregateFields else {
            throw .internalError("The server did not answer the aggregation.")
        }
        var result: [String: Value] = [:]
        for (name, alias) in aliases {
            guard let value = fields[alias] else {
                throw .internalError("The server's answer lacks the aggregation \(name).")
            }
            result[name] = value
        }
        return result
    }

    private func requireNetwork() async throws(Status) {
        let failure: Status? = await withCheckedContinuation { continuation in
            core.enqueue(
                { engine in
                    continuation.resume(
                        returning: engine.remoteStore.canUseNetwork
                            ? nil : .unavailable("Failed to get result from server: the network is disabled."))
                }, refused: { continuation.resume(returning: $0) })
        }
        if let failure { throw failure }
    }

    /// The app's provider has no time limit; a cancelled task does not wait for it.
    private func token() async throws(Status) -> String? {
        let credentials = core.credentials
        do {
            return try await answer(stoppable: { completion in
                let task = Task {
                    do {
                        completion(.success(try await credentials.token().token))
                    } catch {
                        completion(.failure(error))
                    }
                }
                return { task.cancel() }
            })
        } catch let status as Status {
            throw status
        } catch {
            throw Status(.cancelled, "The call was cancelled while it waited for a token.")
        }
    }

    private func call<Response>(
        _ body: (RequestHeaders) async throws(Status) -> Response
    ) async throws(Status) -> Response {
        let token = try await token()
        do throws(Status) {
            return try await body(RequestHeaders(database: core.database, authorizationToken: token))
        } catch {
            if error.code == .unauthenticated { core.credentials.invalidateToken() }
            throw error
        }
    }
}
