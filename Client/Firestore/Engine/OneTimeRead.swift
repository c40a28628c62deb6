internal import HearthModel
internal import HearthSync

/// What `get` means: the cache at once, or the first event of a listener that waits for the server.
enum OneTimeRead {
    static func document(
        _ reference: DocumentReference, _ source: FirestoreSource,
        _ completion: @escaping @Sendable (Result<DocumentSnapshot, Status>) -> Void
    ) {
        let engine = reference.firestore.engine
        guard source != .cache else {
            return engine.documentFromCache(reference.key) { result in
                completion(
                    result.map { document in
                        DocumentSnapshot(
                            firestore: reference.firestore, key: reference.key,
                            document: document.isFound ? document : nil,
                            metadata: SnapshotMetadata(
                                hasPendingWrites: document.isFound && document.hasLocalMutations, isFromCache: true))
                    })
            }
        }
        first(of: reference.documentQuery, engine) { result in
            completion(
                result.map { reference.snapshot(of: $0) }.flatMap { snapshot in
                    guard snapshot.metadata.isFromCache else { return .success(snapshot) }
                    if !snapshot.exists {
                        // To say that it doesn't exist would be a guess.
                        return .failure(.unavailable("Failed to get document because the client is offline."))
                    }
                    if source == .server {
                        return .failure(
                            .unavailable(
                                "Failed to get document from server. (However, this document does exist in the local cache. "
                                    + "Run again without setting source to FirestoreSource.server to retrieve the cached "
                                    + "document.)"))
                    }
                    return .success(snapshot)
                })
        }
    }

    static func documents(
        _ query: Query, _ source: FirestoreSource,
        _ completion: @escaping @Sendable (Result<QuerySnapshot, Status>) -> Void
    ) {
        view(of: query.model, query.firestore.engine, source) { result in
            completion(result.map { QuerySnapshot(query: query, view: $0) })
        }
    }

    /// A query's result as the engine gives it.
    static func view(
        of query: ClientQuery, _ engine: any FirestoreEngine, _ source: FirestoreSource,
        _ completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) {
        guard source != .cache else { return engine.documentsFromCache(query, completion: completion) }
        first(of: query, engine) { result in
            completion(
                result.flatMap { view in
                    guard view.isFromCache, source == .server else { return .success(view) }
                    return .failure(
                        .unavailable(
                            "Failed to get documents from server. (However, these documents may exist in the local cache. "
                                + "Run again without setting source to FirestoreSource.server to retrieve the cached "
                                + "documents.)"))
                })
        }
    }

    /// The first event decides; the listener is gone before the result is given.
    private static func first(
        of query: ClientQuery, _ engine: any FirestoreEngine,
        _ completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) {
        struct State {
            var listener: EngineListener?
            var isDone = false
        }
        let state = Locked(State())
        let listener = engine.listen(
            to: query,
            options: SyncClient.ListenOptions(
                includesDocumentMetadataChanges: true, includesQueryMetadataChanges: true, waitsForSyncWhenOnline: true)
        ) { result in
            let (isFirst, listener) = state.with { state in
                defer { state.isDone = true }
                return (!state.isDone, state.listener)
            }
            guard isFirst else { return }
            listener?.remove()
            completion(result)
        }
        let isDone = state.with { state in
            state.listener = listener
            return state.isDone
        }
        // The event may have been quicker than the call that asked for it.
        if isDone { listener.remove() }
    }
}
