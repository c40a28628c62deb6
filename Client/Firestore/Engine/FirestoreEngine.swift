internal import HearthModel
internal import HearthSync

/// The sync engine as the public API sees it: `SyncClient`, or a fake in tests.
///
/// Completions and events arrive on one serial queue of the instance. The API forwards completion handlers and
/// listeners to the user's queue. `async` calls need no queue of the user.
protocol FirestoreEngine: AnyObject, Sendable {
    /// Why the engine could not start: every call fails with it, and no repetition helps. nil for one that works.
    var startFailure: Status? { get }

    /// - Parameter onEnd: the engine was terminated. No event follows.
    func listen(
        to query: ClientQuery, options: SyncClient.ListenOptions, onEnd: @escaping @Sendable () -> Void,
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> EngineListener
    func addSnapshotsInSyncListener(_ onSync: @escaping @Sendable () -> Void) -> EngineListener

    func documentFromCache(
        _ key: ResourcePath, completion: @escaping @Sendable (Result<ClientDocument, Status>) -> Void)
    func documentsFromCache(
        _ query: ClientQuery, completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void)

    func write(_ mutations: [Mutation], completion: @escaping @Sendable (Status?) -> Void)
    func waitForPendingWrites(completion: @escaping @Sendable (Status?) -> Void)
    /// - Parameter onEnd: the reason why no number follows; nil when the engine was terminated.
    func observePendingWrites(
        onCount: @escaping @Sendable (Int) -> Void, onEnd: @escaping @Sendable (Status?) -> Void
    ) -> EngineListener

    func lookUp(_ keys: [ResourcePath]) async throws(Status) -> [ClientDocument]
    func commit(_ mutations: [Mutation]) async throws(Status)
    func aggregate(_ query: ClientQuery, _ aggregations: [Aggregation]) async throws(Status) -> [String: Value]

    func loadBundle(
        read: @escaping @Sendable (Int) throws -> [UInt8],
        onProgress: @escaping @Sendable (BundleProgress, Status?) -> Void)
    func namedQuery(_ name: String, completion: @escaping @Sendable (ClientQuery?) -> Void)

    func setIndexConfiguration(_ json: String, completion: @escaping @Sendable (Status?) -> Void)
    func setAutomaticIndexing(_ isEnabled: Bool)
    func deleteAllIndexes()

    func enableNetwork(completion: @escaping @Sendable (Status?) -> Void)
    func disableNetwork(completion: @escaping @Sendable (Status?) -> Void)
    func terminate(completion: @escaping @Sendable () -> Void)
}

extension FirestoreEngine {
    var startFailure: Status? { nil }

    func listen(
        to query: ClientQuery, options: SyncClient.ListenOptions,
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> EngineListener { listen(to: query, options: options, onEnd: {}, onEvent: onEvent) }
}

/// One listener. Repeated removal has no effect.
final class EngineListener: Sendable {
    private let onRemove: @Sendable () -> Void

    init(onRemove: @escaping @Sendable () -> Void) { self.onRemove = onRemove }

    func remove() { onRemove() }
}

/// The progress of loading a bundle.
struct BundleProgress: Sendable, Equatable {
    var documentsLoaded = 0
    var totalDocuments = 0
    var bytesLoaded = 0
    var totalBytes = 0
    var state: LoadBundleTaskState
}

extension BundleProgress {
    init(_ progress: SyncClient.BundleProgress) {
        documentsLoaded = progress.documentsLoaded
        totalDocuments = progress.totalDocuments
        bytesLoaded = Int(clamping: progress.bytesLoaded)
        totalBytes = Int(clamping: progress.totalBytes)
        state =
            switch progress.state {
            case .error: .error
            case .inProgress: .inProgress
            case .success: .success
            }
    }
}
