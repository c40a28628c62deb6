import Foundation
import HearthModel
import HearthSync

@testable import HearthFirestore

/// An engine without a cache and a network: it records the calls, and returns answers that the test provides.
final class FakeEngine: FirestoreEngine {
    struct Listen: Sendable {
        var query: ClientQuery
        var options: SyncClient.ListenOptions
        var onEvent: @Sendable (Result<ViewSnapshot, Status>) -> Void
        var isRemoved = false
    }

    struct State: Sendable {
        var writes: [[Mutation]] = []
        var writeResult: Status?
        var listens: [Listen] = []
        /// Delivered at once to each new listener.
        var firstEvent: Result<ViewSnapshot, Status>?
        var cached: [ResourcePath: ClientDocument] = [:]
        var cachedView: ViewSnapshot?
        var cachedQueries: [ClientQuery] = []
        /// The server's documents, for transactions.
        var stored: [ResourcePath: ClientDocument] = [:]
        var commits: [[Mutation]] = []
        /// Used one after another; nil succeeds.
        var commitResults: [Status?] = []
        var lookUps = 0
        var aggregations: [(ClientQuery, [Aggregation])] = []
        var aggregationResult: Result<[String: Value], Status> = .success([:])
        var bundleProgress: [(BundleProgress, Status?)] = []
        var bundleBytes: [UInt8] = []
        var namedQueries: [String: ClientQuery] = [:]
        var calls: [String] = []
    }

    let state = Locked(State())
    let request: EngineFactory.Request

    init(_ request: EngineFactory.Request) { self.request = request }

    private func answer(_ work: @escaping @Sendable () -> Void) { request.callbacks.async(execute: work) }

    private func note(_ call: String) { state.with { $0.calls.append(call) } }

    func listen(
        to query: ClientQuery, options: SyncClient.ListenOptions, onEnd: @escaping @Sendable () -> Void,
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> EngineListener {
        let (index, first) = state.with { state in
            state.listens.append(Listen(query: query, options: options, onEvent: onEvent))
            return (state.listens.count - 1, state.firstEvent)
        }
        if let first { answer { onEvent(first) } }
        return EngineListener { [state] in state.with { $0.listens[index].isRemoved = true } }
    }

    /// Delivers an event to a listener, removed or not: the API must drop late events.
    func raise(_ event: Result<ViewSnapshot, Status>, at index: Int = 0) {
        let onEvent = state.with { $0.listens[index].onEvent }
        answer { onEvent(event) }
    }

    /// No write is pending, and none becomes so.
    func observePendingWrites(
        onCount: @escaping @Sendable (Int) -> Void, onEnd: @escaping @Sendable (Status?) -> Void
    ) -> EngineListener {
        answer { onCount(0) }
        return EngineListener { [self] in note("removePendingWrites") }
    }

    func addSnapshotsInSyncListener(_ onSync: @escaping @Sendable () -> Void) -> EngineListener {
        answer(onSync)
        return EngineListener { [self] in note("removeInSync") }
    }

    func documentFromCache(
        _ key: ResourcePath, completion: @escaping @Sendable (Result<ClientDocument, Status>) -> Void
    ) {
        let document = state.with { $0.cached[key] }
        answer {
            completion(
                document.map { .success($0) } ?? .failure(.unavailable("Failed to get document from cache.")))
        }
    }

    func documentsFromCache(
        _ query: ClientQuery, completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) {
        let view = state.with { state in
            state.cachedQueries.append(query)
            return state.cachedView
        }
        answer { completion(view.map { .success($0) } ?? .failure(.unavailable("No view."))) }
    }

    func write(_ mutations: [Mutation], completion: @escaping @Sendable (Status?) -> Void) {
        let result = state.with { state in
            state.writes.append(mutations)
            return state.writeResult
        }
        answer { completion(result) }
    }

    func waitForPendingWrites(completion: @escaping @Sendable (Status?) -> Void) {
        note("waitForPendingWrites")
        answer { completion(nil) }
    }

    func lookUp(_ keys: [ResourcePath]) async throws(Status) -> [ClientDocument] {
        state.with { state in
            state.lookUps += 1
            return keys.map { state.stored[$0] ?? ClientDocument(key: $0, kind: .missing) }
        }
    }

    func commit(_ mutations: [Mutation]) async throws(Status) {
        let result = state.with { state in
            state.commits.append(mutations)
            return state.commitResults.isEmpty ? nil : state.commitResults.removeFirst()
        }
        if let result { throw result }
    }

    func aggregate(_ query: ClientQuery, _ aggregations: [Aggregation]) async throws(Status) -> [String: Value] {
        let result = state.with { state in
            state.aggregations.append((query, aggregations))
            return state.aggregationResult
        }
        return try result.get()
    }

    func loadBundle(
        read: @escaping @Sendable (Int) throws -> [UInt8],
        onProgress: @escaping @Sendable (BundleProgress, Status?) -> Void
    ) {
        let progress = state.with { $0.bundleProgress }
        answer { [state] in
            while let piece = try? read(3), !piece.isEmpty { state.with { $0.bundleBytes += piece } }
            for (step, error) in progress { onProgress(step, error) }
        }
    }

    func namedQuery(_ name: String, completion: @escaping @Sendable (ClientQuery?) -> Void) {
        let query = state.with { $0.namedQueries[name] }
        answer { completion(query) }
    }

    func setIndexConfiguration(_ json: String, completion: @escaping @Sendable (Status?) -> Void) {
        note("indexes \(json)")
        answer { completion(nil) }
    }

    func setAutomaticIndexing(_ isEnabled: Bool) { note("automatic \(isEnabled)") }
    func deleteAllIndexes() { note("deleteAllIndexes") }

    func enableNetwork(completion: @escaping @Sendable (Status?) -> Void) {
        note("enableNetwork")
        answer { completion(nil) }
    }

    func disableNetwork(completion: @escaping @Sendable (Status?) -> Void) {
        note("disableNetwork")
        answer { completion(nil) }
    }

    func terminate(completion: @escaping @Sendable () -> Void) {
        note("terminate")
        answer(completion)
    }
}

/// A Firestore over a fake engine, for its own app.
struct Bench {
    static let project = "projectID"

    let app: FirebaseApp
    let firestore: Firestore
    let made = Locked<FakeEngine?>(nil)
    let cleared = Locked<[SyncConfiguration]>([])

    var engine: FakeEngine {
        _ = firestore.engine
        return made.with { $0! }
    }

    init(configure: (Firestore) -> Void = { _ in }) throws {
        let name = "app-\(UUID().uuidString)"
        try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: Self.project))
        app = FirebaseApp.app(name: name)!
        let made = made
        let cleared = cleared
        firestore = Firestore.instance(
            app: app, database: "(default)",
            factory: EngineFactory(
                make: { (request) throws(Status) in
                    let engine = FakeEngine(request)
                    made.with { $0 = engine }
                    return engine
                },
                clearPersistence: { (configuration) throws(Status) in cleared.with { $0.append(configuration) } }))
        let settings = FirestoreSettings()
        settings.dispatchQueue = DispatchQueue(label: "tests.user")
        settings.cacheSettings = MemoryCacheSettings()
        firestore.settings = settings
        configure(firestore)
    }

    /// A snapshot in the API's form.
    func snapshot(_ path: String, _ fields: [MapValue.Field]?) -> DocumentSnapshot {
        let key = ResourcePath(path.split(separator: "/").map(String.init))
        return DocumentSnapshot(
            firestore: firestore, key: key,
            document: fields.map {
                ClientDocument(
                    key: key, kind: .found, version: HearthModel.Timestamp(microseconds: 1), fields: MapValue($0))
            },
            metadata: SnapshotMetadata(hasPendingWrites: false, isFromCache: false))
    }

    func document(
        _ path: String, _ fields: [String: Value], version: Int64 = 1, state: ClientDocument.State = .synced
    ) -> ClientDocument {
        ClientDocument(
            key: ResourcePath(path.split(separator: "/").map(String.init)), kind: .found,
            version: HearthModel.Timestamp(microseconds: version),
            fields: MapValue(fields.map { MapValue.Field(name: $0.key, value: $0.value) }), state: state)
    }

    func view(
        _ query: ClientQuery, _ documents: [ClientDocument], old: [ClientDocument] = [],
        changes: [ViewSnapshot.Change]? = nil, mutated: Set<ResourcePath> = [], isFromCache: Bool = false,
        excludesMetadataChanges: Bool = true
    ) -> ViewSnapshot {
        let set = DocumentSet(documents, comparator: query.comparator)
        return ViewSnapshot(
            query: query, documents: set, oldDocuments: DocumentSet(old, comparator: query.comparator),
            changes: changes ?? set.map { ViewSnapshot.Change(kind: .added, document: $0) }, mutatedKeys: mutated,
            isFromCache: isFromCache, syncStateChanged: true, excludesMetadataChanges: excludesMetadataChanges,
            hasCachedResults: false)
    }
}
