import HearthConcurrency
import HearthModel

/// The server's answer to a batch.
struct BatchResult: Sendable {
    var batch: MutationBatch
    var commitVersion: Timestamp
    /// One for each mutation.
    var results: [MutationResult]
    var streamToken: [UInt8]
}

/// The changes of a view, as the local store receives them.
struct ViewChange: Sendable {
    var targetID: Int32
    var isFromCache: Bool
    var added: Set<ResourcePath>
    var removed: Set<ResourcePath>
}

/// All stored state: the user's writes, the server's documents, and the results that views derive from them. Each
/// operation is one transaction of the persistence.
final class LocalStore {
    /// The maximal time that a resume token stays only in memory.
    static let resumeTokenAgeSecondsMax: Int64 = 300

    private let clock: any Clock
    let persistence: any Persistence
    let targets: any TargetCache
    let remoteDocuments: any RemoteDocumentCache
    private(set) var queue: any MutationQueue
    private(set) var overlays: any OverlayCache
    private(set) var indexManager: any IndexManager
    let queryEngine: QueryEngine
    let viewReferences = ViewReferences()
    var activeTargets: [Int32: TargetData] = [:]
    private var activeTargetIDs: [ClientTarget: Int32] = [:]
    private var knownCollections: Set<ResourcePath> = []
    /// Documents that a reset target has sent with a state older than the cache's state of an acknowledged write, where
    /// the acknowledgement is newer than the target's snapshot. A snapshot from after the write contains its effect, or
    /// the write is lost: see `apply`.
    var renewedTooEarly: [ResourcePath: ClientDocument] = [:]
    private var overlayDebts = OverlayDebts()
    /// Acknowledgements on streams that can be resumed.
    private var acknowledgements = 0

    init(_ persistence: any Persistence, user: ClientUser, clock: any Clock = SystemClock()) {
        self.clock = clock
        self.persistence = persistence
        targets = persistence.targets
        remoteDocuments = persistence.remoteDocuments
        queue = persistence.mutationQueue(for: user)
        overlays = persistence.overlayCache(for: user)
        indexManager = persistence.indexManager(for: user)
        queryEngine = QueryEngine(
            LocalDocumentsView(
                clock: clock, remoteDocuments: remoteDocuments, queue: queue, overlays: overlays,
                indexManager: indexManager))
        persistence.references.localViewReferences = viewReferences
    }

    var view: LocalDocumentsView { queryEngine.view }

    // MARK: Users

    /// Switches to another user's writes. Returns the documents whose local view may differ.
    /// - Throws: when they cannot be read. The user is switched in any case.
    func changeUser(_ user: ClientUser) throws(Status) -> [ResourcePath: ClientDocument] {
        let before: [MutationBatch]
        do throws(Status) {
            before = try persistence.transaction("Read batches of the former user") { () throws(Status) in
                try queue.allBatches
            }
        } catch {
            use(user)
            throw error
        }
        use(user)
        return try persistence.transaction("Read batches of the new user") { () throws(Status) in
            var keys: Set<ResourcePath> = []
            for batch in before { keys.formUnion(batch.keys) }
            for batch in try queue.allBatches { keys.formUnion(batch.keys) }
            return try view.documents(keys)
        }
    }

    private func use(_ user: ClientUser) {
        queue = persistence.mutationQueue(for: user)
        overlays = persistence.overlayCache(for: user)
        indexManager = persistence.indexManager(for: user)
        overlayDebts = OverlayDebts()
        queryEngine.view = LocalDocumentsView(
            clock: clock, remoteDocuments: remoteDocuments, queue: queue, overlays: overlays,
            indexManager: indexManager)
    }

    /// Runs a change on another user's writes, and returns the changes that the present user sees.
    func asUser(
        _ other: ClientUser, insteadOf user: ClientUser,
        _ body: () throws(Status) -> [ResourcePath: ClientDocument]
    ) throws(Status) -> [ResourcePath: ClientDocument] {
        if other == user { return try body() }
        let keys: Set<ResourcePath>
        use(other)
        do throws(Status) { keys = Set(try body().keys) } catch {
            use(user)
            throw error
        }
        use(user)
        return try documents(keys)
    }

    // MARK: Writes

    /// Adds mutations to the queue as one batch. Returns the resulting documents.
    /// - Parameters:
    ///   - time: of the call; nil for now.
    ///   - number: of the journal's record of the write.
    func write(
        _ mutations: [Mutation], at time: Timestamp? = nil, journalNumber number: Int64? = nil
    ) throws(Status) -> (batchID: Int, changed: [ResourcePath: ClientDocument]) {
        let localWriteTime = time ?? clock.now()
        let keys = Set(mutations.map(\.key))
        let collections = Set(keys.map(\.parent)).subtracting(knownCollections)
        let outcome = try persistence.transaction("Write locally") { () throws(Status) in
            if let number { persistence.journalNumber = number }
            for collection in collections { try indexManager.addParent(ofCollection: collection) }
            let remote = try remoteDocuments.documents(keys)
            var local = try view.overlaid(remote)
            let base = mutations.compactMap { mutation in
                local[mutation.key].flatMap { mutation.base(for: $0.document) }
            }
            let batch = try queue.add(localWriteTime: localWriteTime, base: base, mutations: mutations)
            batch.apply(to: &local)
            var overlays: [ResourcePath: Mutation] = [:]
            var changed: [ResourcePath: ClientDocument] = [:]
            for (key, state) in local {
                let fields = remote[key]?.isValid == true ? state.changed : nil
                overlays[key] = Mutation.overlay(for: state.document, changed: fields)
                changed[key] = state.document.isValid ? state.document : ClientDocument(key: key, kind: .missing)
            }
            try self.overlays.save(overlays, largestBatchID: batch.id)
            return (batch.id, changed)
        }
        knownCollections.formUnion(collections)
        return outcome
    }

    /// The maximal number of answers that a power failure may undo. Together with the writes in flight they are no more
    /// than the server retains.
    static let undoneAcknowledgementsMax = 6

    /// The server committed the first batch of the queue.
    /// - Parameter result: its token is empty when the stream cannot be resumed.
    func acknowledge(_ result: BatchResult) throws(Status) -> [ResourcePath: ClientDocument] {
        let batch = result.batch
        guard result.results.count == batch.mutations.count else {
            throw .internalError(
                "The server answered \(result.results.count) results to \(batch.mutations.count) writes.")
        }
        let isResumable = !result.streamToken.isEmpty
        let isDurable = isResumable && acknowledgements % Self.undoneAcknowledgementsMax == 0
        let changed = try persistence.transaction("Acknowledge a batch", isDurable: isDurable) { () throws(Status) in
            if isResumable { try queue.setStreamToken(result.streamToken) }
            var versions: [ResourcePath: Timestamp] = [:]
            var transformed: Set<ResourcePath> = []
            for (mutation, answer) in zip(batch.mutations, result.results) {
                versions[mutation.key] = answer.version
                if !answer.transformResults.isEmpty { transformed.insert(mutation.key) }
            }
            let keys = Set(versions.keys)
            var remote = try remoteDocuments.documents(keys).filter { $0.value.version < versions[$0.key] ?? .none }
            for (mutation, answer) in zip(batch.mutations, result.results) {
                guard var document = remote[mutation.key] else { continue }
                try mutation.applyAcknowledged(to: &document, answer)
                remote[mutation.key] = document
            }
            for document in remote.values where document.isValid {
                try remoteDocuments.add(document, readTime: result.commitVersion)
            }
            try queue.remove(batch)
            try overlays.remove(keys: keys, batchID: batch.id)
            transformed = transformed.filter { overlayDebts.isDue($0) }
            if !transformed.isEmpty {
                let documents = try remoteDocuments.documents(transformed)
                try view.recalculateOverlays(of: documents) { overlayDebts.note($0, batches: $1) }
            }
            return try indexed(view.documents(keys))
        }
        if isResumable { acknowledgements += 1 }
        return changed
    }

    var hasOverlayDebts: Bool { !overlayDebts.isEmpty }

    /// No more answers arrive for now: computes the overlays that were deferred. Returns their documents.
    func settleOverlays() throws(Status) -> [ResourcePath: ClientDocument] {
        let keys = overlayDebts.takeAll()
        if keys.isEmpty { return [:] }
        return try persistence.transaction("Settle overlays") { () throws(Status) in
            try view.recalculateOverlays(of: try remoteDocuments.documents(keys))
            return try indexed(view.documents(keys))
        }
    }

    /// The server rejected the first batch of the queue.
    func reject(_ batchID: Int) throws(Status) -> [ResourcePath: ClientDocument] {
        try persistence.transaction("Reject a batch") { () throws(Status) in
            guard let batch = try queue.batch(batchID) else {
                throw .internalError("There is no batch \(batchID) to reject.")
            }
            let keys = batch.keys
            try queue.remove(batch)
            try overlays.remove(keys: keys, batchID: batchID)
            try view.recalculateOverlays(of: try remoteDocuments.documents(keys))
            return try indexed(view.documents(keys))
        }
    }

    /// Documents that lost an overlay may return to a read time, or to an older overlay, that the indexes have already
    /// passed: the backfill would not read them again.
    private func indexed(
        _ documents: [ResourcePath: ClientDocument]
    ) throws(Status) -> [ResourcePath: ClientDocument] {
        try indexManager.updateEntries(documents)
        return documents
    }

    func nextBatch(after id: Int) throws(Status) -> MutationBatch? {
        try persistence.transaction("Get the next batch") { () throws(Status) in try queue.nextBatch(after: id) }
    }

    func highestUnacknowledgedBatchID() throws(Status) -> Int {
        try persistence.transaction("Get the highest batch") { () throws(Status) in
            try queue.highestUnacknowledgedBatchID
        }
    }

    /// The number of the present user's batches.
    func pendingBatchCount() throws(Status) -> Int {
        try persistence.transaction("Count the batches") { () throws(Status) in try queue.count }
    }

    func stream() throws(Status) -> StreamResumption {
        try persistence.transaction("Get the stream") { () throws(Status) in try queue.stream }
    }

    /// Durable when it returns: only then writes are sent on the stream.
    func setStream(_ stream: StreamResumption) throws(Status) {
        try persistence.transaction("Set the stream", isDurable: true) { () throws(Status) in
            try queue.setStream(stream)
        }
    }

    // MARK: Targets

    /// Finds the target in the cache or assigns an id, and makes it active.
    func allocate(_ target: ClientTarget) throws(Status) -> TargetData {
        if let id = activeTargetIDs[target], let data = activeTargets[id] { return data }
        let data = try persistence.transaction("Allocate a target") { () throws(Status) in
            if let cached = try targets.target(target) { return cached }
            let data = TargetData(
                target: target, targetID: targets.highestTargetID + 2,
                sequenceNumber: persistence.currentSequenceNumber)
            try targets.add(data)
            return data
        }
        activeTargets[data.targetID] = data
        activeTargetIDs[target] = data.targetID
        return data
    }

    func release(_ targetID: Int32) throws(Status) {
        guard let data = activeTargets.removeValue(forKey: targetID) else { return }
        activeTargetIDs[data.target] = nil
        let keys = viewReferences.removeAll(of: targetID)
        // If it cannot be written now, the collector uses an earlier time of last use.
        try unlessPassing { () throws(Status) in
            try persistence.transaction("Release a target") { () throws(Status) in
                for key in keys { try persistence.references.removeReference(key) }
                try persistence.references.removeTarget(data)
            }
        }
    }

    /// Runs a change that may be skipped while the cache cannot be written.
    func unlessPassing(_ body: () throws(Status) -> Void) throws(Status) {
        do throws(Status) { try body() } catch { if !error.isPassing { throw error } }
    }

    /// Tests whether the cache can be written, by a write.
    func probe() throws(Status) {
        try persistence.transaction("Try to write") { () throws(Status) in
            try queue.setStream(try queue.stream)
        }
    }

    func targetData(_ target: ClientTarget) throws(Status) -> TargetData? {
        if let id = activeTargetIDs[target], let data = activeTargets[id] { return data }
        return try targets.target(target)
    }

    func remoteKeys(of targetID: Int32) throws(Status) -> Set<ResourcePath> {
        try persistence.transaction("Get the keys of a target") { () throws(Status) in try targets.keys(of: targetID) }
    }

    var lastRemoteSnapshotVersion: Timestamp { targets.lastRemoteSnapshotVersion }

    // MARK: Reading

    func document(_ key: ResourcePath) throws(Status) -> ClientDocument {
        try persistence.transaction("Read a document") { () throws(Status) in try view.document(key) }
    }

    func documents(_ keys: Set<ResourcePath>) throws(Status) -> [ResourcePath: ClientDocument] {
        if keys.isEmpty { return [:] }
        return try persistence.transaction("Read documents") { () throws(Status) in try view.documents(keys) }
    }

    /// The documents that match, regardless of the limit, each once, in any order.
    /// - Parameter usesPreviousResults: whether the keys that the server sent before may be used as a start.
    func execute(
        _ query: ClientQuery, usesPreviousResults: Bool
    ) throws(Status) -> (documents: [ClientDocument], remoteKeys: Set<ResourcePath>) {
        try persistence.transaction("Execute a query") { () throws(Status) in
            var version = Timestamp.none
            var keys: Set<ResourcePath> = []
            if let data = try targetData(query.target) {
                version = data.lastLimboFreeVersion
                keys = try targets.keys(of: data.targetID)
            }
            let documents = try queryEngine.documents(
                matching: query, lastLimboFreeVersion: usesPreviousResults ? version : .none,
                remoteKeys: usesPreviousResults ? keys : [])
            return (documents, keys)
        }
    }

    // MARK: Garbage collection

    func collectGarbage() throws(Status) -> CollectionOutcome {
        guard let collector = persistence.collector else { return CollectionOutcome(didRun: false) }
        let active = Set(activeTargets.keys)
        return try persistence.transaction("Collect garbage") { () throws(Status) in
            try collector.collect(active: active)
        }
    }
}
