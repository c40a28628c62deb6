import HearthConcurrency
import HearthModel
import HearthWire

/// Collects the watch stream's messages until a global snapshot makes them consistent.
final class WatchChangeAggregator {
    private let database: DatabaseName
    private let clock: any Clock
    private let remoteKeys: (Int32) -> Set<ResourcePath>
    private let targetData: (Int32) -> TargetData?
    private var states: [Int32: WatchTargetState] = [:]
    /// Targets for which a message arrived since the last snapshot. Messages for all targets, which come with each
    /// snapshot, are stored once: a client may have thousands of targets.
    private var touched: Set<Int32> = []
    private var tokenOfAll: [UInt8] = []
    private var tokenOfAllSequence = 0
    private var isTokenOfAllNew = false
    /// When the other targets last received the token. With many targets they do not receive it with each snapshot: an
    /// older token only costs a later listen some reads.
    private var quietAtSeconds = -Double.infinity
    private static let quietTargetsAtOnceMax = 100
    private static let quietSeconds = 1.0
    /// Counts messages of targets, to determine which token is newer.
    private var sequence = 0
    private var updates: [ResourcePath: ClientDocument] = [:]
    /// The targets to which a document was added, or from which it was removed.
    private var targetsOfUpdate: [ResourcePath: Set<Int32>] = [:]
    /// The targets that sent an existing document. A deletion does not count: another target may have sent an older
    /// state of the document after it.
    private var sources: [ResourcePath: Set<Int32>] = [:]
    private var mismatches: [Int32: TargetData.Purpose] = [:]
    /// Documents from targets that the server has reset, or that look a document up.
    private var renewed: Set<ResourcePath> = []

    /// - Parameters:
    ///   - remoteKeys: the keys that the server has sent for a target.
    ///   - targetData: the active target with an id; nil when there is none.
    init(
        database: DatabaseName, clock: any Clock = SystemClock(),
        remoteKeys: @escaping (Int32) -> Set<ResourcePath>, targetData: @escaping (Int32) -> TargetData?
    ) {
        self.database = database
        self.clock = clock
        self.remoteKeys = remoteKeys
        self.targetData = targetData
    }

    /// A request to add or to remove a target was sent.
    func requestSent(_ targetID: Int32) {
        states[targetID, default: WatchTargetState(sequence: sequence)].requestSent()
    }

    func forget(_ targetID: Int32) {
        states[targetID] = nil
        touched.remove(targetID)
    }

    /// The active target with this id, to which messages that arrive now apply.
    private func activeTarget(_ targetID: Int32) -> TargetData? {
        if let state = states[targetID], state.isPending { return nil }
        return targetData(targetID)
    }

    // MARK: Targets

    func take(_ change: WatchChange.Target) {
        sequence += 1
        var targetIDs = change.targetIDs
        if targetIDs.isEmpty, change.kind == .noChange {
            if change.resumeToken.isEmpty { return }
            (tokenOfAll, tokenOfAllSequence, isTokenOfAllNew) = (change.resumeToken, sequence, true)
            return
        }
        if targetIDs.isEmpty { targetIDs = states.keys.filter { activeTarget($0) != nil }.sorted() }
        for targetID in targetIDs { take(change, targetID) }
    }

    private func take(_ change: WatchChange.Target, _ targetID: Int32) {
        switch change.kind {
        case .noChange:
            if activeTarget(targetID) != nil { update(targetID) { $0.take(token: change.resumeToken, sequence) } }
        case .added:
            update(targetID) { state in
                state.responseCame(sequence)
                // Earlier changes belong to an earlier listen.
                if !state.isPending { state.clearPendingChanges() }
                state.take(token: change.resumeToken, sequence)
            }
        case .removed:
            update(targetID) { $0.responseCame(sequence) }
            if states[targetID]?.isPending == false { forget(targetID) }
        case .current:
            guard activeTarget(targetID) != nil else { return }
            update(targetID) { state in
                state.becomeCurrent()
                state.take(token: change.resumeToken, sequence)
            }
        case .reset:
            guard activeTarget(targetID) != nil else { return }
            reset(targetID)
            update(targetID) { $0.take(token: change.resumeToken, sequence) }
        }
    }

    private func update(_ targetID: Int32, _ body: (inout WatchTargetState) -> Void) {
        touched.insert(targetID)
        body(&states[targetID, default: WatchTargetState(sequence: sequence)])
    }

    /// The server resets the target: it has no documents until the server sends them again.
    private func reset(_ targetID: Int32) {
        touched.insert(targetID)
        states[targetID] = WatchTargetState(isReset: true, sequence: sequence)
        for key in remoteKeys(targetID) { remove(key, from: targetID, nil) }
    }

    // MARK: Documents

    func take(_ change: WatchChange.Document) {
        for targetID in change.updatedTargetIDs {
            if let document = change.document, document.isFound {
                add(document, to: targetID)
            } else {
                remove(change.key, from: targetID, change.document)
            }
        }
        for targetID in change.removedTargetIDs { remove(change.key, from: targetID, change.document) }
    }

    private func add(_ document: ClientDocument, to targetID: Int32) {
        guard activeTarget(targetID) != nil else { return }
        let isKnown = remoteKeys(targetID).contains(document.key)
        update(targetID) { $0.record(isKnown ? .modified : .added, of: document.key) }
        note(document, document.key, targetID)
        if states[targetID]?.isReset == true || targetData(targetID)?.purpose == .limboResolution {
            renewed.insert(document.key)
        }
        sources[document.key, default: []].insert(targetID)
    }

    private func remove(_ key: ResourcePath, from targetID: Int32, _ document: ClientDocument?) {
        guard activeTarget(targetID) != nil else { return }
        let isKnown = remoteKeys(targetID).contains(key)
        update(targetID) { if isKnown { $0.record(.removed, of: key) } else { $0.forget(key) } }
        note(document, key, targetID)
    }

    private func note(_ document: ClientDocument?, _ key: ResourcePath, _ targetID: Int32) {
        targetsOfUpdate[key, default: []].insert(targetID)
        guard let document else { return }
        updates[key] = document
    }

    // MARK: Existence filters

    /// Compares the server's number of documents with the client's. When they differ, the bloom filter may identify the
    /// documents that were removed; otherwise the client listens to the target again.
    func take(_ filter: WatchChange.Filter) {
        guard let data = activeTarget(filter.targetID) else { return }
        if data.target.isDocumentTarget {
            guard filter.count == 0 else { return }
            let key = data.target.path
            return remove(key, from: filter.targetID, ClientDocument(key: key, kind: .missing))
        }
        let keys = remoteKeys(filter.targetID)
        let count = keys.count + (states[filter.targetID]?.countDifference ?? 0)
        if count == filter.count { return }
        var purpose = TargetData.Purpose.existenceFilterMismatch
        if let names = Self.usableFilter(filter.unchangedNames) {
            purpose = .existenceFilterMismatchBloom
            let removed = keys.filter { !contains(names, $0) }
            for key in removed { remove(key, from: filter.targetID, nil) }
            if count - removed.count == filter.count { return }
        }
        reset(filter.targetID)
        mismatches[filter.targetID] = purpose
    }

    /// nil for a filter that is missing, invalid or empty, and where names can't be hashed.
    static func usableFilter(_ message: BloomFilterMessage?) -> BloomFilter? {
        guard MD5.isAvailable, let message, let bits = message.bits, !bits.bitmap.isEmpty else { return nil }
        return BloomFilter(bitmap: bits.bitmap, padding: Int(bits.padding), hashCount: Int(message.hashCount))
    }

    private func contains(_ filter: BloomFilter, _ key: ResourcePath) -> Bool {
        let name = ResourceName(database: database, path: key).string
        return filter.contains(BloomFilter.Hash(digest: MD5.digest(name.utf8)))
    }

    // MARK: Snapshots

    /// All changes since the last snapshot. The aggregator then starts anew.
    func remoteEvent(at version: Timestamp) -> RemoteEvent {
        var event = RemoteEvent(snapshotVersion: version)
        for targetID in touched.sorted() {
            // Changes before the answer to a request belong to an earlier listen.
            guard let data = activeTarget(targetID) else { continue }
            if states[targetID]?.isCurrent == true, data.target.isDocumentTarget {
                synthesizeDeletion(data.target.path, targetID, version)
            }
            if let state = states[targetID], state.hasPendingChanges {
                let isOlder = state.tokenSequence < tokenOfAllSequence
                event.targetChanges[targetID] = state.targetChange(isOlder ? tokenOfAll : state.resumeToken)
                states[targetID]?.clearPendingChanges()
            }
        }
        touched = []
        if isTokenOfAllNew, isTimeForQuietTargets {
            isTokenOfAllNew = false
            event.tokenOfQuietTargets = tokenOfAll
            event.quietTargets = states.keys.filter { event.targetChanges[$0] == nil && activeTarget($0) != nil }
        }
        for (key, targetIDs) in targetsOfUpdate {
            let isOnlyLimbo = targetIDs.allSatisfy { targetID in
                guard let data = activeTarget(targetID) else { return true }
                return data.purpose == .limboResolution
            }
            if isOnlyLimbo { event.limboDocumentChanges.insert(key) }
        }
        event.documentUpdates = updates
        event.targetMismatches = mismatches
        event.renewedDocuments = renewed
        updates = [:]
        targetsOfUpdate = [:]
        sources = [:]
        mismatches = [:]
        renewed = []
        return event
    }

    private var isTimeForQuietTargets: Bool {
        if states.count <= Self.quietTargetsAtOnceMax { return true }
        let now = Double(clock.monotonicNanoseconds()) / 1e9
        guard now >= quietAtSeconds + Self.quietSeconds else { return false }
        quietAtSeconds = now
        return true
    }

    /// A document target that is current without its document: the document does not exist. The server does not send a
    /// message for it.
    private func synthesizeDeletion(_ key: ResourcePath, _ targetID: Int32, _ version: Timestamp) {
        if sources[key]?.contains(targetID) == true || remoteKeys(targetID).contains(key) { return }
        remove(key, from: targetID, ClientDocument(key: key, kind: .missing, version: version))
    }
}
