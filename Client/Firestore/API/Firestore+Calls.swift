public import Foundation
internal import HearthModel
internal import HearthSync

extension Firestore {
    // MARK: References

    /// - Parameter collectionPath: an odd number of segments, joined by `/`.
    @discardableResult
    public func collection(_ collectionPath: String) -> CollectionReference {
        orTrap { () throws(Status) in
            CollectionReference(firestore: self, path: try Paths.collection(collectionPath, below: ResourcePath()))
        }
    }

    /// - Parameter documentPath: an even number of segments, joined by `/`.
    @discardableResult
    public func document(_ documentPath: String) -> DocumentReference {
        orTrap { () throws(Status) in
            DocumentReference(firestore: self, key: try Paths.document(documentPath, below: ResourcePath()))
        }
    }

    /// All documents of all collections with this id.
    @discardableResult
    public func collectionGroup(_ collectionID: String) -> Query {
        orTrap { () throws(Status) in
            Query(
                firestore: self,
                ClientQuery(path: ResourcePath(), collectionGroup: try Paths.collectionID(collectionID)))
        }
    }

    @discardableResult
    public func batch() -> WriteBatch { WriteBatch(firestore: self) }

    /// Manages the cache's own indexes; nil with a memory cache.
    public var persistentCacheIndexManager: PersistentCacheIndexManager? {
        isPersistent ? PersistentCacheIndexManager(firestore: self) : nil
    }

    // MARK: Network

    public func enableNetwork(completion: (((any Error)?) -> Void)? = nil) {
        engine.enableNetwork(completion: handler(completion))
    }

    nonisolated(nonsending) public func enableNetwork() async throws {
        try await waiting { engine.enableNetwork(completion: $0) }
    }

    /// Reads come from the cache, and writes wait, until the network is enabled again.
    public func disableNetwork(completion: (((any Error)?) -> Void)? = nil) {
        engine.disableNetwork(completion: handler(completion))
    }

    nonisolated(nonsending) public func disableNetwork() async throws {
        try await waiting { engine.disableNetwork(completion: $0) }
    }

    /// Waits for the server's answer to all writes that are pending now, of the present user.
    public func waitForPendingWrites(completion: @escaping ((any Error)?) -> Void) {
        engine.waitForPendingWrites(completion: handler(completion))
    }

    nonisolated(nonsending) public func waitForPendingWrites() async throws {
        try await waiting { engine.waitForPendingWrites(completion: $0) }
    }

    /// Calls whenever all listeners have been told what belongs together: they are in sync with each other.
    @discardableResult
    public func addSnapshotsInSyncListener(_ listener: @escaping () -> Void) -> any ListenerRegistration & Sendable {
        let registration = SnapshotListener(firestore: self)
        let carried = Carried(listener)
        registration.start(
            engine.addSnapshotsInSyncListener { [registration] in registration.deliver { carried.value() } })
        return registration
    }

    // MARK: Ends

    /// Ends the instance; every later use of it, but `clearPersistence` and `terminate`, is a programming error.
    public func terminate(completion: (((any Error)?) -> Void)? = nil) {
        run(completion) { [self] () throws(Status) in await shutDown() }
    }

    nonisolated(nonsending) public func terminate() async throws { await shutDown() }

    /// Deletes the cache's files: before the first use, or after `terminate`.
    public func clearPersistence(completion: (((any Error)?) -> Void)? = nil) {
        run(completion) { [self] () throws(Status) in try await clearCache() }
    }

    nonisolated(nonsending) public func clearPersistence() async throws {
        do {
            try await clearCache()
        } catch {
            throw error.nsError
        }
    }

    // MARK: Indexes

    /// - Parameter configuration: the text of a `firestore.indexes.json`.
    @available(*, deprecated, message: "Use persistentCacheIndexManager.")
    public func setIndexConfiguration(_ configuration: String, completion: (((any Error)?) -> Void)? = nil) {
        engine.setIndexConfiguration(configuration, completion: handler(completion))
    }

    @available(*, deprecated, message: "Use persistentCacheIndexManager.")
    nonisolated(nonsending) public func setIndexConfiguration(_ configuration: String) async throws {
        try await waiting { engine.setIndexConfiguration(configuration, completion: $0) }
    }

    @available(*, deprecated, message: "Use persistentCacheIndexManager.")
    public func setIndexConfiguration(_ stream: InputStream, completion: (((any Error)?) -> Void)? = nil) {
        do {
            engine.setIndexConfiguration(try BundleSource.string(of: stream), completion: handler(completion))
        } catch {
            handler(completion)(error)
        }
    }

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

/// Manages the indexes of the cache, which make queries over many cached documents fast.
public final class PersistentCacheIndexManager: Sendable, Hashable {
    private let firestore: Firestore

    init(firestore: Firestore) { self.firestore = firestore }

    /// Lets queries that read many more documents than they give make themselves an index. Off at the program's start.
    public func enableIndexAutoCreation() { firestore.engine.setAutomaticIndexing(true) }

    public func disableIndexAutoCreation() { firestore.engine.setAutomaticIndexing(false) }

    public func deleteAllIndexes() { firestore.engine.deleteAllIndexes() }

    public static func == (left: PersistentCacheIndexManager, right: PersistentCacheIndexManager) -> Bool {
        left.firestore === right.firestore
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(firestore)) }
}
