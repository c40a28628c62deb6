import HearthCache
import HearthModel

/// A cache that ends with the process.
///
/// Memory has no rollback: a transaction that throws may have changed the state, and the instance is not used any
/// further.
final class MemoryPersistence: Persistence {
    enum Collection: Sendable {
        /// Documents without a reference are removed at the end of the transaction.
        case eager
        case lru(CollectionParameters)
    }

    let memoryTargets = MemoryTargetCache()
    let memoryDocuments = MemoryRemoteDocumentCache()
    private let memoryIndexManager = MemoryIndexManager()
    private let memoryBundles = MemoryBundleCache()
    private(set) var queues: [ClientUser: MemoryMutationQueue] = [:]
    private var overlays: [ClientUser: MemoryOverlayCache] = [:]
    private var eager: EagerReferenceDelegate?
    private var lru: LRUReferenceDelegate?
    private var isInTransaction = false
    var nextBatchID = 1

    private(set) var currentSequenceNumber: Int64 = 0

    init(_ collection: Collection = .eager) {
        memoryDocuments.indexManager = memoryIndexManager
        switch collection {
        case .eager:
            let delegate = EagerReferenceDelegate(self)
            eager = delegate
            memoryTargets.references = delegate
        case .lru(let parameters):
            let delegate = LRUReferenceDelegate(self, parameters)
            lru = delegate
            memoryTargets.references = delegate
        }
    }

    func transaction<Result>(
        _ label: StaticString, isDurable: Bool, _ body: () throws(Status) -> Result
    ) throws(Status) -> Result {
        precondition(!isInTransaction, "transactions do not nest")
        isInTransaction = true
        defer { isInTransaction = false }
        currentSequenceNumber += 1
        eager?.begin()
        let result = try body()
        try eager?.commit()
        return result
    }

    func mutationQueue(for user: ClientUser) -> any MutationQueue {
        if let queue = queues[user] { return queue }
        let queue = MemoryMutationQueue(self)
        queues[user] = queue
        return queue
    }

    func overlayCache(for user: ClientUser) -> any OverlayCache {
        if let cache = overlays[user] { return cache }
        let cache = MemoryOverlayCache()
        overlays[user] = cache
        return cache
    }

    func indexManager(for user: ClientUser) -> any IndexManager { memoryIndexManager }

    var remoteDocuments: any RemoteDocumentCache { memoryDocuments }
    var targets: any TargetCache { memoryTargets }
    var bundles: any BundleCache { memoryBundles }
    var collector: (any LRUCollector)? { lru }

    var references: any ReferenceDelegate {
        if let eager { return eager }
        guard let lru else { preconditionFailure("the reference delegate is created at the start") }
        return lru
    }

    /// Whether a pending write of any user affects the document.
    func isMutated(_ key: ResourcePath) -> Bool { queues.values.contains { $0.contains(key) } }

    var journal: WriteJournal? { nil }
    var journalNumber: Int64 = 0

    func shutDown() {}
}
