import Foundation
import HearthConcurrency
import HearthModel
import HearthWire

/// The entry point of the sync engine: the public API calls it. Every call may come from any thread and returns at
/// once. Completions and events arrive on the client's callback queue, in order. `HearthFirestore` implements Apple's
/// API on it.
///
/// Everything below it runs on one worker queue (`SyncCore`). The components are those of the public Firestore SDKs:
///
///     SyncClient ── EventManager ── QueryListener      which listener receives which event
///         └─ SyncEngine ── View (one per query)        which documents, in which order; which are in limbo
///               ├─ LocalStore ── QueryEngine           the user's writes, and the server's documents
///               │      └─ Persistence                  in memory, or SQLite
///               └─ RemoteStore ── ManagedStream (two)  backoff, idle timeout, tokens
///                      └─ WatchChangeAggregator        collects messages until a snapshot makes them consistent
///
/// Invariants:
///
/// - A local document is the remote document with its overlay, and the overlay is the effect of the pending writes.
/// - Views change only by the documents that changed.
/// - A snapshot reaches all listeners of its round before anything else happens.
/// - A cache that temporarily cannot be written fails the calls that need it; everything else waits
///   (`SyncEnginePause.swift`).
/// - A damaged cache ends the instance, and every waiting caller receives the reason.
package final class SyncClient: Sendable {
    package struct ListenOptions: Sendable, Equatable {
        package enum Source: Sendable { case `default`, cache }
        package var includesDocumentMetadataChanges: Bool
        package var includesQueryMetadataChanges: Bool
        package var waitsForSyncWhenOnline: Bool
        package var source: Source

        package init(
            includesDocumentMetadataChanges: Bool = false, includesQueryMetadataChanges: Bool = false,
            waitsForSyncWhenOnline: Bool = false, source: Source = .default
        ) {
            self.includesDocumentMetadataChanges = includesDocumentMetadataChanges
            self.includesQueryMetadataChanges = includesQueryMetadataChanges
            self.waitsForSyncWhenOnline = waitsForSyncWhenOnline
            self.source = source
        }
    }

    /// One listener, until it is removed.
    ///
    /// The lock guards `isMuted`; `query` belongs to the worker queue.
    package final class Listener: @unchecked Sendable {
        private let lock = NSLock()
        private var isMuted = false
        /// The engine retains it while it delivers events: the caller may have released its own reference.
        weak var query: QueryListener?

        init() {}

        func mute() { lock.withLock { isMuted = true } }
        var isActive: Bool { lock.withLock { !isMuted } }
    }

    package struct BundleProgress: Sendable, Equatable {
        package enum State: Sendable { case error, inProgress, success }
        package var documentsLoaded: Int
        package var totalDocuments: Int
        package var bytesLoaded: Int64
        package var totalBytes: Int64
        package var state: State

        package init(
            documentsLoaded: Int, totalDocuments: Int, bytesLoaded: Int64, totalBytes: Int64, state: State
        ) {
            self.documentsLoaded = documentsLoaded
            self.totalDocuments = totalDocuments
            self.bytesLoaded = bytesLoaded
            self.totalBytes = totalBytes
            self.state = state
        }
    }

    private let core: SyncCore
    private let hasIndexes: Bool
    private let callbacks: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// Opens the cache and starts. Fails when another process uses the cache, when the cache is newer than this
    /// program, or when it cannot be opened.
    /// - Parameters:
    ///   - callbacks: runs completions and events, one after another.
    package init(
        configuration: SyncConfiguration, datastore: any Datastore, credentials: any CredentialsProvider,
        callbacks: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) throws(Status) {
        core = SyncCore(
            database: configuration.database, persistence: try configuration.openPersistence(), datastore: datastore,
            credentials: credentials, options: SyncCore.Options(onWarning: configuration.onWarning))
        if case .persistent = configuration.cache { hasIndexes = true } else { hasIndexes = false }
        self.callbacks = callbacks
        core.start()
    }

    // MARK: Listening

    /// A query that the server would always reject fails at once with `INVALID_ARGUMENT`.
    /// - Parameter onEnd: runs when the client was terminated. No event follows.
    package func listen(
        to query: ClientQuery, options: ListenOptions, onEnd: @escaping @Sendable () -> Void = {},
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> Listener {
        let listener = Listener()
        let callbacks = callbacks
        let deliver: @Sendable (Result<ViewSnapshot, Status>) -> Void = { event in
            callbacks { if listener.isActive { onEvent(event) } }
        }
        do throws(Status) { try core.serializer.check(query) } catch {
            deliver(.failure(error))
            return listener
        }
        core.enqueue(
            { engine throws(Status) in
                let queryListener = QueryListener(
                    query, options, onEnd: { callbacks { if listener.isActive { onEnd() } } }, onEvent: { deliver($0) })
                listener.query = queryListener
                do throws(Status) { try engine.eventManager.add(queryListener) } catch {
                    if error.isPassing { throw error }
                    // All listeners receive the failure, this one included.
                    engine.fail(error)
                }
            }, refused: { deliver(.failure($0)) })
        return listener
    }

    /// Mutes at once, also for events that are already queued. Repeated calls have no effect.
    package func remove(_ listener: Listener) {
        listener.mute()
        core.enqueue { engine throws(Status) in
            engine.eventManager.removeInSyncListener(ObjectIdentifier(listener))
            engine.pendingWrites.remove(ObjectIdentifier(listener))
            guard let query = listener.query else { return }
            listener.query = nil
            try engine.eventManager.remove(query)
        }
    }

    package func addSnapshotsInSyncListener(_ onSync: @escaping @Sendable () -> Void) -> Listener {
        let listener = Listener()
        let callbacks = callbacks
        core.enqueue { engine throws(Status) in
            engine.eventManager.addInSyncListener(ObjectIdentifier(listener)) {
                callbacks { if listener.isActive { onSync() } }
            }
        }
        return listener
    }

    // MARK: Reading once from the cache. The API implements `get` with the other sources: it listens once.

    /// A found document or a missing one. Fails with `UNAVAILABLE` when the cache has no information about it.
    package func documentFromCache(
        _ key: ResourcePath, completion: @escaping @Sendable (Result<ClientDocument, Status>) -> Void
    ) {
        let deliver = onCallbacks(completion)
        core.enqueue(
            { engine throws(Status) in
                let document = try engine.localStore.document(key)
                switch document.kind {
                case .found, .missing: deliver(.success(document))
                case .invalid, .unknown:
                    deliver(
                        .failure(
                            .unavailable(
                                "Failed to get document from cache. (However, this document may exist on the server. "
                                    + "Run again without setting source to FirestoreSourceCache to attempt to retrieve "
                                    + "the document from the server.)")))
                }
            }, refused: { deliver(.failure($0)) })
    }

    package func documentsFromCache(
        _ query: ClientQuery, completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) {
        let deliver = onCallbacks(completion)
        core.enqueue(
            { engine throws(Status) in
                let (documents, remoteKeys) = try engine.localStore.execute(query, usesPreviousResults: true)
                let view = View(query, remoteKeys: remoteKeys)
                let outcome = view.apply(view.computeFirst(documents))
                guard let snapshot = outcome.snapshot else {
                    preconditionFailure("the first state of a view has a snapshot")
                }
                deliver(.success(snapshot))
            }, refused: { deliver(.failure($0)) })
    }

    // MARK: Writing

    /// Writes locally at once, as one batch, and completes with the server's answer. With a cache on the disk the write is
    /// stored when the call returns. A write that the server would
    /// always reject, for example one with a reserved name, fails with `INVALID_ARGUMENT` and is not stored.
    package func write(_ mutations: [Mutation], completion: @escaping @Sendable (Status?) -> Void) {
        let deliver = onCallbacks(completion)
        if mutations.isEmpty { return core.enqueue({ _ in deliver(nil) }, refused: { deliver($0) }) }
        do throws(Status) {
            try MutationSerializer(database: core.database).check(mutations)
        } catch {
            return deliver(error)
        }
        core.write(mutations, completion: deliver)
    }

    package func waitForPendingWrites(completion: @escaping @Sendable (Status?) -> Void) {
        let deliver = onCallbacks(completion)
        core.enqueue(
            { engine throws(Status) in try engine.waitForPendingWrites { deliver($0) } }, refused: { deliver($0) })
    }

    /// Observes the number of the present user's batches that the server has not answered.
    /// - Parameters:
    ///   - onCount: receives the present number, and each one after a change.
    ///   - onEnd: the reason why there are no more; nil when the client was terminated. No number follows.
    package func observePendingWrites(
        onCount: @escaping @Sendable (Int) -> Void, onEnd: @escaping @Sendable (Status?) -> Void
    ) -> Listener {
        let listener = Listener()
        let callbacks = callbacks
        let end: @Sendable (Status?) -> Void = { reason in callbacks { if listener.isActive { onEnd(reason) } } }
        core.enqueue(
            { engine throws(Status) in
                guard listener.isActive else { return }
                try engine.observePendingWrites(
                    ObjectIdentifier(listener),
                    onCount: { count in callbacks { if listener.isActive { onCount(count) } } }, onEnd: end)
            }, refused: { end($0 == SyncCore.terminated ? nil : $0) })
        return listener
    }

    // MARK: Calls that go directly to the server: transactions and aggregations.

    /// Reads documents at the server and bypasses the cache.
    package func lookUp(_ keys: [ResourcePath]) async throws(Status) -> [ClientDocument] {
        try await RemoteCalls(core).lookUp(keys)
    }

    /// Commits without the local queue, for transactions.
    package func commit(_ mutations: [Mutation]) async throws(Status) { try await RemoteCalls(core).commit(mutations) }

    /// Fails with `UNAVAILABLE` while the network is disabled.
    package func aggregate(_ query: ClientQuery, _ aggregations: [Aggregation]) async throws(Status) -> [String: Value]
    {
        try await RemoteCalls(core).aggregate(query, aggregations)
    }

    // MARK: Bundles

    /// - Parameter read: returns the next bytes, at most as many as requested, and an empty array at the end. It is
    ///   called on a thread of the client that may block.
    package func loadBundle(
        read: @escaping @Sendable (Int) throws -> [UInt8],
        onProgress: @escaping @Sendable (BundleProgress, Status?) -> Void
    ) {
        let relay = ProgressRelay(callbacks, onProgress)
        // The source may block its thread without a time limit.
        core.atEnd(of: relay) { relay.end($0) }
        BundleLoader(core, read: read) { [core] progress, error in
            relay.take(progress, error)
            if progress.state != .inProgress { core.forgetEnd(of: relay) }
        }.start()
    }

    package func namedQuery(_ name: String, completion: @escaping @Sendable (ClientQuery?) -> Void) {
        let callbacks = callbacks
        core.enqueue(
            { engine throws(Status) in
                let query = try engine.localStore.namedQuery(name)?.query
                callbacks { completion(query) }
            }, refused: { _ in callbacks { completion(nil) } })
    }

    // MARK: Indexes of the cache. These calls have no effect on a memory cache.

    /// - Parameter json: the contents of a `firestore.indexes.json`. Fails with `INVALID_ARGUMENT` when it cannot be
    ///   parsed.
    package func setIndexConfiguration(_ json: String, completion: @escaping @Sendable (Status?) -> Void) {
        let deliver = onCallbacks(completion)
        guard hasIndexes else { return deliver(nil) }
        do throws(Status) {
            let indexes = try ClientIndexConfiguration(json: json).indexes
            core.enqueue(
                { engine throws(Status) in
                    try engine.localStore.configure(indexes)
                    self.core.fillIndexesSoon()
                    deliver(nil)
                }, refused: { deliver($0) })
        } catch {
            deliver(error)
        }
    }

    package func setAutomaticIndexing(_ isEnabled: Bool) {
        core.enqueue { engine throws(Status) in engine.localStore.setAutomaticIndexing(isEnabled) }
    }

    package func deleteAllIndexes() {
        core.enqueue { engine throws(Status) in try engine.localStore.deleteAllIndexes() }
    }

    // MARK: Lifetime

    package func enableNetwork(completion: @escaping @Sendable (Status?) -> Void) {
        let deliver = onCallbacks(completion)
        core.enqueue(
            { engine throws(Status) in
                engine.remoteStore.enableNetwork()
                deliver(nil)
            }, refused: { deliver($0) })
    }

    package func disableNetwork(completion: @escaping @Sendable (Status?) -> Void) {
        let deliver = onCallbacks(completion)
        core.enqueue(
            { engine throws(Status) in
                engine.remoteStore.disableNetwork()
                deliver(nil)
            }, refused: { deliver($0) })
    }

    /// Ends everything. The cache stays on disk.
    package func terminate(completion: @escaping @Sendable () -> Void) {
        let callbacks = callbacks
        core.terminate { callbacks(completion) }
    }

    /// Deletes the cache's files. Fails with `FAILED_PRECONDITION` when the cache is in use.
    package static func clearPersistence(_ configuration: SyncConfiguration) throws(Status) {
        if case .persistent(let folder, _) = configuration.cache {
            try SQLitePersistence.clear(
                folder: folder, appName: configuration.appName, database: configuration.database)
        }
    }

    private func onCallbacks<Event: Sendable>(
        _ body: @escaping @Sendable (Event) -> Void
    ) -> @Sendable (Event) -> Void {
        let callbacks = callbacks
        return { event in callbacks { body(event) } }
    }
}

extension SyncConfiguration {
    fileprivate func openPersistence() throws(Status) -> any Persistence {
        switch cache {
        case .memoryEager: return MemoryPersistence(.eager)
        case .memoryLRU(let sizeBytes):
            return MemoryPersistence(.lru(CollectionParameters(thresholdBytes: sizeBytes)))
        case .persistent(let folder, let sizeBytes):
            let cache = try SQLitePersistence(
                folder: folder, appName: appName, database: database, sizeBytes: sizeBytes, onWarning: onWarning)
            if let damage = cache.damage { onDamage(damage) }
            try cache.replay(clock: SystemClock(), onWarning: onWarning)
            return cache
        }
    }
}
