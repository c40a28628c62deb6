internal import HearthModel
internal import HearthSync

/// Adapts `SyncClient` to the API's protocol.
final class SyncClientEngine: FirestoreEngine {
    private let client: SyncClient

    init(_ client: SyncClient) { self.client = client }

    func listen(
        to query: ClientQuery, options: SyncClient.ListenOptions, onEnd: @escaping @Sendable () -> Void,
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> EngineListener {
        let listener = client.listen(to: query, options: options, onEnd: onEnd, onEvent: onEvent)
        return EngineListener { [client] in client.remove(listener) }
    }

    func addSnapshotsInSyncListener(_ onSync: @escaping @Sendable () -> Void) -> EngineListener {
        let listener = client.addSnapshotsInSyncListener(onSync)
        return EngineListener { [client] in client.remove(listener) }
    }

    func documentFromCache(
        _ key: ResourcePath, completion: @escaping @Sendable (Result<ClientDocument, Status>) -> Void
    ) { client.documentFromCache(key, completion: completion) }

    func documentsFromCache(
        _ query: ClientQuery, completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) { client.documentsFromCache(query, completion: completion) }

    func write(_ mutations: [Mutation], completion: @escaping @Sendable (Status?) -> Void) {
        client.write(mutations, completion: completion)
    }

    func waitForPendingWrites(completion: @escaping @Sendable (Status?) -> Void) {
        client.waitForPendingWrites(completion: completion)
    }

    func observePendingWrites(
        onCount: @escaping @Sendable (Int) -> Void, onEnd: @escaping @Sendable (Status?) -> Void
    ) -> EngineListener {
        let listener = client.observePendingWrites(onCount: onCount, onEnd: onEnd)
        return EngineListener { [client] in client.remove(listener) }
    }

    func lookUp(_ keys: [ResourcePath]) async throws(Status) -> [ClientDocument] { try await client.lookUp(keys) }

    func commit(_ mutations: [Mutation]) async throws(Status) { try await client.commit(mutations) }

    func aggregate(_ query: ClientQuery, _ aggregations: [Aggregation]) async throws(Status) -> [String: Value] {
        try await client.aggregate(query, aggregations)
    }

    func loadBundle(
        read: @escaping @Sendable (Int) throws -> [UInt8],
        onProgress: @escaping @Sendable (BundleProgress, Status?) -> Void
    ) {
        client.loadBundle(read: read) { progress, error in onProgress(BundleProgress(progress), error) }
    }

    func namedQuery(_ name: String, completion: @escaping @Sendable (ClientQuery?) -> Void) {
        client.namedQuery(name, completion: completion)
    }

    func setIndexConfiguration(_ json: String, completion: @escaping @Sendable (Status?) -> Void) {
        client.setIndexConfiguration(json, completion: completion)
    }

    func setAutomaticIndexing(_ isEnabled: Bool) { client.setAutomaticIndexing(isEnabled) }

    func deleteAllIndexes() { client.deleteAllIndexes() }

    func enableNetwork(completion: @escaping @Sendable (Status?) -> Void) {
        client.enableNetwork(completion: completion)
    }

    func disableNetwork(completion: @escaping @Sendable (Status?) -> Void) {
        client.disableNetwork(completion: completion)
    }

    func terminate(completion: @escaping @Sendable () -> Void) { client.terminate(completion: completion) }
}
