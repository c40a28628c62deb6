import HearthModel

/// The sync engine's front door: what the public API calls. Every call may come from any thread and returns at once;
/// completions and events arrive on the client's callback queue, in order.
///
/// `HearthFirestore` puts Apple's API on it.
public final class SyncClient: @unchecked Sendable {
    public struct ListenOptions: Sendable, Equatable {
        public enum Source: Sendable { case `default`, cache }
        public var includesDocumentMetadataChanges: Bool
        public var includesQueryMetadataChanges: Bool
        public var waitsForSyncWhenOnline: Bool
        public var source: Source

        public init(
            includesDocumentMetadataChanges: Bool = false, includesQueryMetadataChanges: Bool = false,
            waitsForSyncWhenOnline: Bool = false, source: Source = .default
        ) {
            self.includesDocumentMetadataChanges = includesDocumentMetadataChanges
            self.includesQueryMetadataChanges = includesQueryMetadataChanges
            self.waitsForSyncWhenOnline = waitsForSyncWhenOnline
            self.source = source
        }
    }

    /// Stands for one listener until it is removed.
    public final class Listener: @unchecked Sendable {
        init() {}
    }

    public struct BundleProgress: Sendable, Equatable {
        public enum State: Sendable { case error, inProgress, success }
        public var documentsLoaded: Int
        public var totalDocuments: Int
        public var bytesLoaded: Int64
        public var totalBytes: Int64
        public var state: State
    }

    /// Opens the cache and begins; fails when the cache belongs to another process, is newer than this program, or
    /// cannot be opened.
    /// - Parameters:
    ///   - callbacks: runs completions and events, one after another.
    public init(
        configuration: SyncConfiguration, datastore: any Datastore, credentials: any CredentialsProvider,
        callbacks: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) throws(Status) {
        fatalError("being written")
    }

    // Listening.

    public func listen(
        to query: ClientQuery, options: ListenOptions,
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> Listener { fatalError("being written") }
    /// Mutes at once, also for events on their way. Harmless when repeated.
    public func remove(_ listener: Listener) { fatalError("being written") }
    public func addSnapshotsInSyncListener(_ onSync: @escaping @Sendable () -> Void) -> Listener {
        fatalError("being written")
    }

    // Reading once from the cache. What `get` with the other sources means is the API's: it listens once.

    /// A found document, a missing one, or UNAVAILABLE when nothing is known of it.
    public func documentFromCache(
        _ key: ResourcePath, completion: @escaping @Sendable (Result<ClientDocument, Status>) -> Void
    ) { fatalError("being written") }
    public func documentsFromCache(
        _ query: ClientQuery, completion: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) { fatalError("being written") }

    // Writing.

    /// Writes locally at once, together; completes with the server's answer.
    public func write(_ mutations: [Mutation], completion: @escaping @Sendable (Status?) -> Void) {
        fatalError("being written")
    }
    public func waitForPendingWrites(completion: @escaping @Sendable (Status?) -> Void) {
        fatalError("being written")
    }

    // The server directly: transactions and aggregations. UNAVAILABLE while the network is disabled (aggregations).

    /// Reads documents at the server, past the cache.
    public func lookUp(_ keys: [ResourcePath]) async throws(Status) -> [ClientDocument] {
        fatalError("being written")
    }
    /// Commits without the local queue: for transactions.
    public func commit(_ mutations: [Mutation]) async throws(Status) { fatalError("being written") }
    public func aggregate(_ query: ClientQuery, _ aggregations: [Aggregation]) async throws(Status) -> [String: Value] {
        fatalError("being written")
    }

    // Bundles.

    /// - Parameter read: gives the next bytes (at most as many as asked), empty at the end; called on a thread of the
    ///   client that may block.
    public func loadBundle(
        read: @escaping @Sendable (Int) throws -> [UInt8],
        onProgress: @escaping @Sendable (BundleProgress, Status?) -> Void
    ) { fatalError("being written") }
    public func namedQuery(_ name: String, completion: @escaping @Sendable (ClientQuery?) -> Void) {
        fatalError("being written")
    }

    // Indexes of the cache. Nothing happens with a memory cache.

    /// - Parameter json: the text of a `firestore.indexes.json`. INVALID_ARGUMENT when it can't be read.
    public func setIndexConfiguration(_ json: String, completion: @escaping @Sendable (Status?) -> Void) {
        fatalError("being written")
    }
    public func setAutomaticIndexing(_ isEnabled: Bool) { fatalError("being written") }
    public func deleteAllIndexes() { fatalError("being written") }

    // Life.

    public func enableNetwork(completion: @escaping @Sendable (Status?) -> Void) { fatalError("being written") }
    public func disableNetwork(completion: @escaping @Sendable (Status?) -> Void) { fatalError("being written") }
    /// Ends everything; the cache stays on disk.
    public func terminate(completion: @escaping @Sendable () -> Void) { fatalError("being written") }
    /// Deletes the cache's files. FAILED_PRECONDITION when it is in use.
    public static func clearPersistence(_ configuration: SyncConfiguration) throws(Status) {
        fatalError("being written")
    }
}
