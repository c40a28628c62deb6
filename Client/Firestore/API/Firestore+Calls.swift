public import Foundation
internal import HearthModel
internal import HearthSync

extension Firestore {
    // MARK: References

    /// A reference to a collection.
    /// - Parameter collectionPath: an odd number of segments joined by `/`. The program ends for any other path.
    /// - Returns: the reference. Nothing is read.
    @discardableResult
    public func collection(_ collectionPath: String) -> CollectionReference {
        orTrap { () throws(Status) in
            CollectionReference(firestore: self, path: try Paths.collection(collectionPath, below: ResourcePath()))
        }
    }

    /// A reference to a document.
    /// - Parameter documentPath: an even number of segments joined by `/`. The program ends for any other path.
    /// - Returns: the reference. Nothing is read.
    @discardableResult
    public func document(_ documentPath: String) -> DocumentReference {
        orTrap { () throws(Status) in
            DocumentReference(firestore: self, key: try Paths.document(documentPath, below: ResourcePath()))
        }
    }

    /// A query over all documents in all collections with this id.
    /// - Parameter collectionID: one segment, without `/`. The program ends for any other string.
    /// - Returns: the query, not yet run.
    @discardableResult
    public func collectionGroup(_ collectionID: String) -> Query {
        orTrap { () throws(Status) in
            Query(
                firestore: self,
                ClientQuery(path: ResourcePath(), collectionGroup: try Paths.collectionID(collectionID)))
        }
    }

    /// A new, empty batch of writes.
    /// - Returns: the batch. Its writes are made by `WriteBatch.commit()`.
    @discardableResult
    public func batch() -> WriteBatch { WriteBatch(firestore: self) }

    /// The manager of the cache's indexes; nil for a memory cache.
    public var persistentCacheIndexManager: PersistentCacheIndexManager? {
        isPersistent ? PersistentCacheIndexManager(firestore: self) : nil
    }

    // MARK: Network

    /// Enables the network, and sends the writes that wait.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` and receives nil, or an `NSError` of
    ///   `FirestoreErrorDomain` when the client has ended.
    public func enableNetwork(completion: (((any Error)?) -> Void)? = nil) {
        engine.enableNetwork(completion: handler(completion))
    }

    /// Enables the network, and sends the writes that wait.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` when the client has ended; `CancellationError` when the task is
    ///   cancelled.
    nonisolated(nonsending) public func enableNetwork() async throws {
        try await waiting { engine.enableNetwork(completion: $0) }
    }

    /// Disables the network. Until it is enabled again, reads come from the cache and writes wait.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` and receives nil, or an `NSError` of
    ///   `FirestoreErrorDomain` when the client has ended.
    public func disableNetwork(completion: (((any Error)?) -> Void)? = nil) {
        engine.disableNetwork(completion: handler(completion))
    }

    /// Disables the network. Until it is enabled again, reads come from the cache and writes wait.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` when the client has ended; `CancellationError` when the task is
    ///   cancelled.
    nonisolated(nonsending) public func disableNetwork() async throws {
        try await waiting { engine.disableNetwork(completion: $0) }
    }

    /// Waits until the server has answered all writes of the present user that are pending now.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` and receives nil, or an `NSError` of
    ///   `FirestoreErrorDomain`: `cancelled` when the user changes before that.
    public func waitForPendingWrites(completion: @escaping ((any Error)?) -> Void) {
        engine.waitForPendingWrites(completion: handler(completion))
    }

    /// Waits until the server has answered all writes of the present user that are pending now.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `cancelled` when the user changes before that.
    ///   `CancellationError` when the task is cancelled.
    nonisolated(nonsending) public func waitForPendingWrites() async throws {
        try await waiting { engine.waitForPendingWrites(completion: $0) }
    }

    /// Adds a listener that runs after all snapshot listeners have received a consistent state.
    /// - Parameter listener: runs on `FirestoreSettings.dispatchQueue` after the snapshot listeners of the same change.
    /// - Returns: the registration. The listener runs until its `remove()` is called.
    @discardableResult
    public func addSnapshotsInSyncListener(_ listener: @escaping () -> Void) -> any ListenerRegistration & Sendable {
        let registration = SnapshotListener(firestore: self)
        let carried = Carried(listener)
        registration.start(
            engine.addSnapshotsInSyncListener { [registration] in registration.deliver { carried.value() } })
        return registration
    }

    // MARK: Termination

    /// Ends the instance. Every later use of it, except `clearPersistence` and `terminate`, ends the program. When the
    /// call returns, `firestore()` makes a new instance, whose calls run behind this end.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` and receives nil when the instance has ended.
    public func terminate(completion: (((any Error)?) -> Void)? = nil) {
        let done = handler(completion)
        shutDown { done(nil) }
    }

    /// Ends the instance. Every later use of it, except `clearPersistence` and `terminate`, ends the program.
    /// - Throws: nothing; Apple's signature has `throws`. Cancellation has no effect: the call waits until the instance
    ///   has ended.
    nonisolated(nonsending) public func terminate() async throws { await shutDown() }

    /// Deletes the cache's files. Call it before the first use of the instance, or after `terminate`: it waits until
    /// the instance has ended, and later calls wait for it.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` and receives nil, or an `NSError` of
    ///   `FirestoreErrorDomain`: `failedPrecondition` when the cache is in use.
    public func clearPersistence(completion: (((any Error)?) -> Void)? = nil) {
        clearCache(handler(completion))
    }

    /// Deletes the cache's files. Call it before the first use of the instance, or after `terminate`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `failedPrecondition` when the cache is in use. Cancellation
    ///   has no effect.
    nonisolated(nonsending) public func clearPersistence() async throws {
        do {
            try await clearCache()
        } catch {
            throw error.nsError
        }
    }

    // MARK: Indexes

    /// Replaces the indexes of the cache.
    /// - Parameters:
    ///   - configuration: the contents of a `firestore.indexes.json`.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` and receives nil, or an `NSError` of
    ///     `FirestoreErrorDomain`: `invalidArgument` when the configuration is invalid.
    @available(*, deprecated, message: "Use persistentCacheIndexManager.")
    public func setIndexConfiguration(_ configuration: String, completion: (((any Error)?) -> Void)? = nil) {
        engine.setIndexConfiguration(configuration, completion: handler(completion))
    }

    /// Replaces the indexes of the cache.
    /// - Parameter configuration: the contents of a `firestore.indexes.json`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `invalidArgument` when the configuration is invalid.
    ///   `CancellationError` when the task is cancelled; the configuration may still be applied.
    @available(*, deprecated, message: "Use persistentCacheIndexManager.")
    nonisolated(nonsending) public func setIndexConfiguration(_ configuration: String) async throws {
        try await waiting { engine.setIndexConfiguration(configuration, completion: $0) }
    }

    /// Replaces the indexes of the cache.
    /// - Parameters:
    ///   - stream: the contents of a `firestore.indexes.json`, in UTF-8.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` and receives nil, or an `NSError` of
    ///     `FirestoreErrorDomain`: `invalidArgument` when the configuration is invalid.
    @available(*, deprecated, message: "Use persistentCacheIndexManager.")
    public func setIndexConfiguration(_ stream: InputStream, completion: (((any Error)?) -> Void)? = nil) {
        do {
            engine.setIndexConfiguration(try BundleSource.string(of: stream), completion: handler(completion))
        } catch {
            handler(completion)(error)
        }
    }

    /// Replaces the indexes of the cache.
    /// - Parameter stream: the contents of a `firestore.indexes.json`, in UTF-8.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `invalidArgument` when the configuration is invalid.
    ///   `CancellationError` when the task is cancelled; the configuration may still be applied.
    @available(*, deprecated, message: "Use persistentCacheIndexManager.")
    nonisolated(nonsending) public func setIndexConfiguration(_ stream: InputStream) async throws {
        do {
            let configuration = try BundleSource.string(of: stream)
            try await waiting { engine.setIndexConfiguration(configuration, completion: $0) }
        } catch let status as Status {
            throw status.nsError
        }
    }
}
