import HearthCache
import HearthModel

/// The storage of the local store. It has two implementations: `MemoryPersistence` and `SQLitePersistence`.
///
/// All calls come from the engine's thread, all reads and writes inside `transaction`. A failure to read or commit is
/// fatal for the instance: it is thrown as `INTERNAL`, or as `DATA_LOSS` for damage. Transient failures are not fatal:
/// `RESOURCE_EXHAUSTED` for a full disk, `UNAVAILABLE` for a disk that reports errors.
protocol Persistence: AnyObject {
    /// Atomic. Each transaction has the next sequence number.
    /// - Parameters:
    ///   - label: for logs.
    ///   - isDurable: whether it waits until a power failure cannot undo it.
    func transaction<Result>(
        _ label: StaticString, isDurable: Bool, _ body: () throws(Status) -> Result
    ) throws(Status) -> Result
    var currentSequenceNumber: Int64 { get }
    /// Where writes are stored before the engine has them; nil for a cache in memory.
    var journal: WriteJournal? { get }
    /// The number of the last record of the journal whose write is in a queue.
    var journalNumber: Int64 { get set }

    /// The parts of one user. Drop the parts of the former user when you request those of another one.
    func mutationQueue(for user: ClientUser) -> any MutationQueue
    func overlayCache(for user: ClientUser) -> any OverlayCache
    func indexManager(for user: ClientUser) -> any IndexManager
    var remoteDocuments: any RemoteDocumentCache { get }
    var targets: any TargetCache { get }
    var bundles: any BundleCache { get }
    var references: any ReferenceDelegate { get }
    /// nil when documents are removed at once (eager), or are never collected.
    var collector: (any LRUCollector)? { get }

    func shutDown()
}

extension Persistence {
    /// A transaction that a power failure may undo.
    func transaction<Result>(_ label: StaticString, _ body: () throws(Status) -> Result) throws(Status) -> Result {
        try transaction(label, isDurable: false, body)
    }
}

/// The state with which a Write stream is resumed, so that a write whose answer was lost is not applied twice.
struct StreamResumption: Sendable, Equatable {
    /// Empty when no stream can be resumed: the server retains no answers, or no stream was opened.
    var id = ""
    /// The token of the last answer that the cache has.
    var token: [UInt8] = []
}

protocol MutationQueue: AnyObject {
    var isEmpty: Bool { get throws(Status) }
    var stream: StreamResumption { get throws(Status) }
    func setStream(_ stream: StreamResumption) throws(Status)
    func setStreamToken(_ token: [UInt8]) throws(Status)
    /// Ids continue from the highest of all users' queues.
    func add(localWriteTime: Timestamp, base: [Mutation], mutations: [Mutation]) throws(Status) -> MutationBatch
    func batch(_ id: Int) throws(Status) -> MutationBatch?
    func nextBatch(after id: Int) throws(Status) -> MutationBatch?
    /// `MutationBatch.unknownID` when there is none.
    var highestUnacknowledgedBatchID: Int { get throws(Status) }
    /// The number of batches.
    var count: Int { get throws(Status) }
    var allBatches: [MutationBatch] { get throws(Status) }
    /// In the order of their ids, without duplicates.
    func batches(affecting keys: Set<ResourcePath>) throws(Status) -> [MutationBatch]
    /// The batch must be the first of the queue. Notifies the reference delegate of each of its keys.
    func remove(_ batch: MutationBatch) throws(Status)
    func contains(_ key: ResourcePath) throws(Status) -> Bool
}

protocol OverlayCache: AnyObject {
    func overlay(of key: ResourcePath) throws(Status) -> Overlay?
    func overlays(of keys: Set<ResourcePath>) throws(Status) -> [ResourcePath: Overlay]
    /// Replaces the existing overlays.
    func save(_ overlays: [ResourcePath: Mutation], largestBatchID: Int) throws(Status)
    /// Those whose largest batch id is the given one.
    func remove(keys: Set<ResourcePath>, batchID: Int) throws(Status)
    /// Documents directly in the collection, with a larger batch id.
    func overlays(inCollection path: ResourcePath, above batchID: Int) throws(Status) -> [ResourcePath: Overlay]
    /// In the order of batches; at least `count` unless there are no more. A batch is never split.
    func overlays(inGroup collectionID: String, above batchID: Int, count: Int) throws(Status)
        -> [(key: ResourcePath, overlay: Overlay)]
}

protocol RemoteDocumentCache: AnyObject {
    /// Also records the collection's parent in the index manager. Invalid documents are never added.
    func add(_ document: ClientDocument, readTime: Timestamp) throws(Status)
    func remove(_ keys: [ResourcePath]) throws(Status)
    /// An invalid document when the cache has none.
    func document(_ key: ResourcePath) throws(Status) -> ClientDocument
    /// One for each key, invalid ones included.
    func documents(_ keys: Set<ResourcePath>) throws(Status) -> [ResourcePath: ClientDocument]
    /// Documents directly in the query's collection, after the offset, that match or whose key is in `mutated`; each once,
    /// in any order.
    /// - Parameter onRead: counts the rows read, for automatic indexes.
    func documents(
        matching query: ClientQuery, after offset: IndexOffset, mutated: Set<ResourcePath>, onRead: (Int) -> Void
    ) throws(Status) -> [ClientDocument]
    /// In the order of (read time, key), of the collection group, after the offset.
    func documents(inGroup collectionID: String, after offset: IndexOffset, limit: Int) throws(Status)
        -> [ClientDocument]
    /// In bytes. A memory cache counts serialized sizes.
    var size: Int64 { get throws(Status) }
}

protocol TargetCache: AnyObject {
    func add(_ data: TargetData) throws(Status)
    func update(_ data: TargetData) throws(Status)
    func remove(_ data: TargetData) throws(Status)
    func target(_ target: ClientTarget) throws(Status) -> TargetData?
    var highestTargetID: Int32 { get }
    var highestSequenceNumber: Int64 { get }
    var count: Int { get }
    var lastRemoteSnapshotVersion: Timestamp { get }
    func setLastRemoteSnapshotVersion(_ version: Timestamp) throws(Status)
    /// Both notify the reference delegate.
    func addKeys(_ keys: Set<ResourcePath>, to targetID: Int32) throws(Status)
    func removeKeys(_ keys: Set<ResourcePath>, from targetID: Int32) throws(Status)
    func removeAllKeys(of targetID: Int32) throws(Status)
    func keys(of targetID: Int32) throws(Status) -> Set<ResourcePath>
    func contains(_ key: ResourcePath) throws(Status) -> Bool
    func forEach(_ body: (TargetData) -> Void) throws(Status)
}

struct BundleRecord: Sendable, Equatable {
    var id: String
    var createTime: Timestamp
    var version: Int
    var totalDocuments: Int
    var totalBytes: Int64
}

struct NamedQuery: Sendable {
    var name: String
    /// With the limit type. A query with a limit to the last is not reversed.
    var query: ClientQuery
    var readTime: Timestamp
}

protocol BundleCache: AnyObject {
    func bundle(_ id: String) throws(Status) -> BundleRecord?
    func save(_ bundle: BundleRecord) throws(Status)
    func namedQuery(_ name: String) throws(Status) -> NamedQuery?
    func save(_ query: NamedQuery) throws(Status)
}

/// Decides when documents may be removed: see "What goes, and when" in `docs/internals/client.md`.
protocol ReferenceDelegate: AnyObject {
    /// The keys in active views, set once by the local store.
    var localViewReferences: (any LocalViewReferences)? { get set }
    func addReference(_ key: ResourcePath) throws(Status)
    func removeReference(_ key: ResourcePath) throws(Status)
    func removeMutationReference(_ key: ResourcePath) throws(Status)
    func removeTarget(_ data: TargetData) throws(Status)
    func limboDocumentTouched(_ key: ResourcePath) throws(Status)
}

protocol LocalViewReferences: AnyObject {
    func contains(_ key: ResourcePath) -> Bool
}

struct CollectionOutcome: Sendable, Equatable {
    var didRun: Bool
    var sequenceNumbersCollected = 0
    var targetsRemoved = 0
    var documentsRemoved = 0
}

/// When the least-recently-used collector runs, and how much it removes.
struct CollectionParameters: Sendable, Equatable {
    /// The collector does nothing below this size; -1 disables it.
    var thresholdBytes: Int64
    var percentile = 10
    var sequenceNumbersMax = 1000

    static let sizeBytesMin: Int64 = 1 << 20
    static let never: Int64 = -1
}

protocol LRUCollector: AnyObject {
    var parameters: CollectionParameters { get set }
    /// - Parameter active: targets that are never collected, whatever their age.
    func collect(active: Set<Int32>) throws(Status) -> CollectionOutcome
}

enum IndexCoverage: Sendable { case none, partial, full }

/// Collection parents, definitions, state and entries of one user. A memory cache has only the collection parents.
protocol IndexManager: AnyObject {
    func addParent(ofCollection path: ResourcePath) throws(Status)
    func parents(ofCollectionID id: String) throws(Status) -> [ResourcePath]

    func add(_ index: FieldIndex) throws(Status)
    func delete(_ index: FieldIndex) throws(Status)
    /// For all users: definitions, states and entries.
    func deleteAll() throws(Status)
    var indexes: [FieldIndex] { get throws(Status) }
    func indexes(ofGroup collectionID: String) throws(Status) -> [FieldIndex]
    /// Creates a full index for each sub-target that has none.
    func createIndexes(for target: ClientTarget) throws(Status)

    func coverage(of target: ClientTarget) throws(Status) -> IndexCoverage
    /// nil when no index serves the target. Otherwise all documents whose entries match, and possibly a few more.
    func documents(matching target: ClientTarget) throws(Status) -> [ResourcePath]?
    /// The lowest of the indexes that serve the target.
    func lowestOffset(for target: ClientTarget) throws(Status) -> IndexOffset
    func lowestOffset(ofGroup collectionID: String) throws(Status) -> IndexOffset
    func nextGroupToUpdate() throws(Status) -> String?
    func updateGroup(_ collectionID: String, offset: IndexOffset) throws(Status)
    /// Writes the difference of the documents' entries.
    func updateEntries(_ documents: [ResourcePath: ClientDocument]) throws(Status)
}
