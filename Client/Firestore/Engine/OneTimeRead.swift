internal import HearthModel
internal import HearthSync

/// Implements `get`: a read from the cache, or the first event of a listener that waits for the server.
enum OneTimeRead {
    /// Ends a read early: its completion does not run then.
    typealias Stop = @Sendable () -> Void

    @discardableResult
    static func document(
        _ reference: DocumentReference, _ source: FirestoreSource,
        _ completion: @escaping @Sendable (Result<DocumentSnapshot, Status>) -> Void
    ) -> Stop {
        let engine = reference.firestore.engine
        guard source != .cache else {
            engine.documentFromCache(reference.key) { result in
                completion(
                    result.map { document in
                        DocumentSnapshot(
                            firestore: reference.firestore, key: reference.key,
                            document: document.isFound ? document : nil,
                            metadata: SnapshotMetadata(
                                hasPendingWrites: document.isFound && document.hasLocalMutations, isFromCache: true))
                    })
            }
            return {}
        }
        return first(of: reference.documentQuery, engine) { result in
            completion(
                result.map { reference.snapshot(of: $0) }.flatMap { snapshot in
                    guard snapshot.metadata.isFromCache else { return .success(snapshot) }
                    if !snapshot.exists {
                        // The client does not know whether the document exists.
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

    @discardableResult
    static func documents(
        _ query: Query, _ source: FirestoreSource,
        _ completion: @escaping @Sendable (Result<QuerySnapshot, Status>) -> Void
    ) -> Stop {
        view(of: query.model, query.firestore.engine, source) { result in
            completion(result.map { QuerySnapshot(query: query, view: $0) })
        }
    }

    /// A query's result in the engine's form.
    @discardableResult
    static func view(
        of query: ClientQuery, _ engine: any FirestoreEngine, _ source: FirestoreSource,
        _ completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> Stop {
        guard source != .cache else {
            engine.documentsFromCache(query, completion: completion)
            return {}
        }
        return first(of: query, engine) { result in
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

    /// Completes with the first event. The listener is removed before.
    private static func first(
        of query: ClientQuery, _ engine: any FirestoreEngine,
        _ completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> Stop {
        struct State {
            var listener: EngineListener?
            var isDone = false
        }
        let state = Locked(State())
        /// Returns whether the read had not ended before.
        let end: @Sendable () -> Bool = {
            let (isFirst, listener) = state.with { state in
                defer { (state.listener, state.isDone) = (nil, true) }
                return (!state.isDone, state.listener)
            }
            listener?.remove()
            return isFirst
        }
        let listener = engine.listen(
            to: query,
            options: SyncClient.ListenOptions(
                includesDocumentMetadataChanges: true, includesQueryMetadataChanges: true, waitsForSyncWhenOnline: true),
            onEnd: { if end() { completion(.failure(Status(.cancelled, "The client was terminated."))) } },
            onEvent: { result in if end() { completion(result) } })
        let isDone = state.with { state in
            if !state.isDone { state.listener = listener }
            return state.isDone
        }
        // The event may arrive before `listen` returns.
        if isDone { listener.remove() }
        return { _ = end() }
    }
}
