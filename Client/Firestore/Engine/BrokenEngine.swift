internal import Foundation
internal import HearthModel
internal import HearthSync

/// Replaces an engine that could not start, for example because another process uses the cache. Every call fails with
/// the reason, so that the program receives it in its error handling.
final class BrokenEngine: FirestoreEngine {
    let reason: Status
    private let callbacks: DispatchQueue

    init(reason: Status, callbacks: DispatchQueue) {
        self.reason = reason
        self.callbacks = callbacks
    }

    var startFailure: Status? { reason }

    private func fail<Success>(_ completion: @escaping @Sendable (Result<Success, Status>) -> Void) {
        callbacks.async { [reason] in completion(.failure(reason)) }
    }

    private func fail(_ completion: @escaping @Sendable (Status?) -> Void) {
        callbacks.async { [reason] in completion(reason) }
    }

    func listen(
        to query: ClientQuery, options: SyncClient.ListenOptions, onEnd: @escaping @Sendable () -> Void,
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> EngineListener {
        fail(onEvent)
        return EngineListener {}
    }

    func addSnapshotsInSyncListener(_ onSync: @escaping @Sendable () -> Void) -> EngineListener { EngineListener {} }

    func documentFromCache(
        _ key: ResourcePath, completion: @escaping @Sendable (Result<ClientDocument, Status>) -> Void
    ) { fail(completion) }

    func documentsFromCache(
        _ query: ClientQuery, completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) { fail(completion) }

    func write(_ mutations: [Mutation], completion: @escaping @Sendable (Status?) -> Void) { fail(completion) }
    func waitForPendingWrites(completion: @escaping @Sendable (Status?) -> Void) { fail(completion) }

    func observePendingWrites(
        onCount: @escaping @Sendable (Int) -> Void, onEnd: @escaping @Sendable (Status?) -> Void
    ) -> EngineListener {
        fail(onEnd)
        return EngineListener {}
    }

    func lookUp(_ keys: [ResourcePath]) async throws(Status) -> [ClientDocument] { throw reason }
    func commit(_ mutations: [Mutation]) async throws(Status) { throw reason }
    func aggregate(_ query: ClientQuery, _ aggregations: [Aggregation]) async throws(Status) -> [String: Value] {
        throw reason
    }

    func loadBundle(
        read: @escaping @Sendable (Int) throws -> [UInt8],
        onProgress: @escaping @Sendable (BundleProgress, Status?) -> Void
    ) {
        callbacks.async { [reason] in onProgress(BundleProgress(state: .error), reason) }
    }

    /// The only call without an error: the reason is logged.
    func namedQuery(_ name: String, completion: @escaping @Sendable (ClientQuery?) -> Void) {
        Log.warning("getQuery(named: \"\(name)\"): \(reason)")
        callbacks.async { completion(nil) }
    }

    func setIndexConfiguration(_ json: String, completion: @escaping @Sendable (Status?) -> Void) { fail(completion) }
    func setAutomaticIndexing(_ isEnabled: Bool) {}
    func deleteAllIndexes() {}
    func enableNetwork(completion: @escaping @Sendable (Status?) -> Void) { fail(completion) }
    func disableNetwork(completion: @escaping @Sendable (Status?) -> Void) { fail(completion) }
    /// Nothing runs, so nothing must be ended.
    func terminate(completion: @escaping @Sendable () -> Void) { callbacks.async { completion() } }
}
