import HearthModel

/// One query's result as its listeners see it.
///
/// It works incrementally. It scans the whole set only once, when the server first reports the target as current.
final class View {
    enum SyncState { case none, local, synced }

    let query: ClientQuery
    private let matcher: ClientQueryMatcher
    private let comparator: DocumentComparator
    private(set) var documents: DocumentSet
    /// The keys that the server has sent for the target.
    private(set) var synced: Set<ResourcePath>
    /// Documents that match according to the cache, although the server, which is current, did not send them.
    private(set) var limbo: Set<ResourcePath> = []
    private(set) var mutatedKeys: Set<ResourcePath> = []
    private(set) var isCurrent = false
    private(set) var syncState = SyncState.none
    /// The client listens at the server for the target: the server's updates follow acknowledged writes.
    var isTargetActive = false
    /// Acknowledged states that are not shown until the documents are read from the server: by this target, or by another
    /// one when the client does not listen at the server for it.
    private var awaited: [ResourcePath: ClientDocument] = [:]
    /// Documents that the server has sent for the target, and whose acknowledged states it should have sent by now.
    private var unconfirmed: Set<ResourcePath> = []
    /// Changes occurred that `limbo` does not reflect.
    private var isLimboStale = true

    init(_ query: ClientQuery, remoteKeys: Set<ResourcePath>) {
        self.query = query
        matcher = ClientQueryMatcher(query)
        comparator = query.comparator
        documents = DocumentSet(comparator: comparator)
        synced = remoteKeys
    }

    // MARK: Computing changes

    /// - Parameter documents: the local store's answer to the query, of which all match.
    func computeFirst(_ documents: [ClientDocument]) -> ViewDocumentChanges {
        precondition(self.documents.isEmpty, "the view has documents already")
        assert(documents.allSatisfy { matcher.matches($0) }, "the local store finds what matches")
        var result = ViewDocumentChanges(documents: self.documents, mutatedKeys: mutatedKeys)
        fill(&result, with: documents)
        return result
    }

    /// - Parameters:
    ///   - overdue: those of the documents for which no update of the server follows.
    ///   - previous: changes that needed a refill, to which these are added.
    func computeChanges(
        _ changed: [ResourcePath: ClientDocument], overdue: Set<ResourcePath> = [],
        after previous: ViewDocumentChanges? = nil
    ) -> ViewDocumentChanges {
        let old = previous?.documents ?? documents
        if isTargetActive { unconfirmed.formUnion(overdue.intersection(synced)) }
        var result =
            previous ?? ViewDocumentChanges(documents: documents, mutatedKeys: mutatedKeys)
        result.needsRefill = false
        if previous == nil, old.isEmpty, changed.count > 1 {
            fill(&result, with: changed.values.filter { matcher.matches($0) })
        } else {
            let edge = edgeOfFullSet(old)
            for (key, document) in changed {
                apply(document, key, old: old[key], edge: edge, isOverdue: overdue.contains(key), to: &result)
            }
        }
        cutToLimit(&result)
        precondition(previous == nil || !result.needsRefill, "a refilled view is full or has all documents")
        return result
    }

    /// The first documents, sorted and cut to the limit at once.
    private func fill(_ result: inout ViewDocumentChanges, with documents: [ClientDocument]) {
        var sorted = comparator.sorted(documents)
        if let limit = query.limit, sorted.count > limit {
            sorted = Array(query.limitType == .first ? sorted.prefix(limit) : sorted.suffix(limit))
        }
        for document in sorted where document.hasLocalMutations { result.mutatedKeys.insert(document.key) }
        result.documents = DocumentSet(sorted: sorted, comparator: comparator)
        result.changes = DocumentChangeSet(added: result.documents)
    }

    /// The last document of a full limit, or the first document of a limit to the last ones.
    private func edgeOfFullSet(_ set: DocumentSet) -> ClientDocument? {
        guard let limit = query.limit, set.count == limit else { return nil }
        return query.limitType == .first ? set.last : set.first
    }

    private func apply(
        _ document: ClientDocument, _ key: ResourcePath, old: ClientDocument?, edge: ClientDocument?,
        isOverdue: Bool, to result: inout ViewDocumentChanges
    ) {
        awaited[key] = nil
        if !document.hasCommittedMutations { unconfirmed.remove(key) }
        let new = matcher.matches(document) ? document : nil
        var change: ViewSnapshot.Change?
        switch (old, new) {
        case (nil, nil): return
        case (nil, let new?): change = ViewSnapshot.Change(kind: .added, document: new)
        case (let old?, nil):
            change = ViewSnapshot.Change(kind: .removed, document: old)
            if edge != nil { result.needsRefill = true }
        case (let old?, let new?):
            if !StrictEquality.equal(old.fields, new.fields) {
                if waitsForSync(old, new), !isOverdue {
                    awaited[key] = new
                    return
                }
                change = ViewSnapshot.Change(kind: .modified, document: new)
                if let edge, isBeyond(new, edge) { result.needsRefill = true }
            } else {
                let waits = mutatedKeys.contains(key) && new.hasCommittedMutations && !isOverdue
                if (new.hasLocalMutations || waits) != mutatedKeys.contains(key) {
                    change = ViewSnapshot.Change(kind: .metadata, document: new)
                } else if waits, !new.hasLocalMutations {
                    awaited[key] = new
                }
            }
        }
        guard let change else { return }
        result.changes.add(change)
        if let new {
            result.documents.insert(new)
            if new.hasLocalMutations { result.mutatedKeys.insert(key) } else { result.mutatedKeys.remove(key) }
        } else {
            result.documents.remove(key)
            result.mutatedKeys.remove(key)
        }
    }

    /// The acknowledged state is not shown. The server's update, which follows, is shown.
    private func waitsForSync(_ old: ClientDocument, _ new: ClientDocument) -> Bool {
        old.hasLocalMutations && new.hasCommittedMutations && !new.hasLocalMutations
    }

    var awaitsUpdates: Bool { isTargetActive && !awaited.isEmpty }

    /// Acknowledged documents that the server did not send, although its snapshot is newer. Two causes are possible.
    /// Another client removed them from the result first: the server does not report changes that cancel out between
    /// two snapshots. Such documents are shown with their acknowledged state; they are in limbo and are looked up. Or
    /// the server sends them with an older state: it was restored from a backup and lost the write.
    func overdue(at version: Timestamp, _ targetChange: TargetChange?) -> [ResourcePath: ClientDocument] {
        guard !awaited.isEmpty, targetChange?.isCurrent ?? isCurrent else { return [:] }
        return awaited.filter { key, document in
            document.version <= version && targetChange?.added.contains(key) != true
        }
    }

    private func isBeyond(_ document: ClientDocument, _ edge: ClientDocument) -> Bool {
        let order = comparator.compare(document, edge)
        return query.limitType == .first ? order > 0 : order < 0
    }

    private func cutToLimit(_ result: inout ViewDocumentChanges) {
        guard let limit = query.limit else { return }
        while result.documents.count > limit,
            let surplus = query.limitType == .first ? result.documents.last : result.documents.first
        {
            result.documents.remove(surplus.key)
            result.mutatedKeys.remove(surplus.key)
            result.changes.add(ViewSnapshot.Change(kind: .removed, document: surplus))
        }
    }

    // MARK: Applying changes

    /// - Parameter isPendingReset: the client listens to the target again, because the server has fewer documents than
    ///   the client.
    func apply(
        _ changes: ViewDocumentChanges, _ targetChange: TargetChange? = nil, isPendingReset: Bool = false
    ) -> ViewOutcome {
        precondition(!changes.needsRefill, "the changes must be refilled before they are applied")
        let old = documents
        documents = changes.documents
        mutatedKeys = changes.mutatedKeys
        if let targetChange { take(targetChange) }
        var outcome = ViewOutcome()
        if isPendingReset || !isCurrent {
            isLimboStale = true
        } else {
            updateLimbo(changes, targetChange, &outcome)
        }
        let newState: SyncState = isCurrent && limbo.isEmpty && !isPendingReset ? .synced : .local
        let stateChanged = newState != syncState
        syncState = newState
        if changes.changes.isEmpty, !stateChanged { return outcome }
        outcome.snapshot = ViewSnapshot(
            query: query, documents: documents, oldDocuments: old, changes: changes.changes.sorted(in: documents),
            mutatedKeys: mutatedKeys, isFromCache: newState == .local, syncStateChanged: stateChanged,
            excludesMetadataChanges: false, hasCachedResults: targetChange.map { !$0.resumeToken.isEmpty } ?? false)
        return outcome
    }

    /// Without a connection no view is current.
    func applyOffline() -> ViewOutcome {
        guard isCurrent else { return ViewOutcome() }
        isCurrent = false
        return apply(ViewDocumentChanges(documents: documents, mutatedKeys: mutatedKeys))
    }

    /// The client no longer listens at the server. The view is not current, and no document is looked up.
    /// - Returns: acknowledged documents that must be shown with their present state, since no update of the server
    ///   follows.
    func endOfServer() -> [ResourcePath: ClientDocument] {
        isTargetActive = false
        unconfirmed = []
        isCurrent = false
        limbo = []
        defer { awaited = [:] }
        return awaited
    }

    /// The target has changed, but the view's documents cannot be computed.
    func note(_ change: TargetChange) {
        take(change)
        isLimboStale = true
    }

    private func take(_ change: TargetChange) {
        synced.formUnion(change.added)
        synced.subtract(change.removed)
        isCurrent = change.isCurrent
    }

    /// The set of documents in limbo depends on the view's documents and the synced keys. It changes only when one of
    /// these changed, unless changes were missed.
    private func updateLimbo(
        _ changes: ViewDocumentChanges, _ targetChange: TargetChange?, _ outcome: inout ViewOutcome
    ) {
        if isLimboStale {
            isLimboStale = false
            var new: Set<ResourcePath> = []
            for document in documents where isInLimbo(document) { new.insert(document.key) }
            outcome.limboRemoved = limbo.subtracting(new).sorted { ResourcePath.compare($0, $1) < 0 }
            outcome.limboAdded = new.subtracting(limbo).sorted { ResourcePath.compare($0, $1) < 0 }
            limbo = new
            return
        }
        var keys = changes.changes.keys
        if let targetChange { keys = keys.union(targetChange.added).union(targetChange.removed) }
        for key in keys.sorted(by: { ResourcePath.compare($0, $1) < 0 }) {
            if let document = documents[key], isInLimbo(document) {
                if limbo.insert(key).inserted { outcome.limboAdded.append(key) }
            } else if limbo.remove(key) != nil {
                outcome.limboRemoved.append(key)
            }
        }
    }

    private func isInLimbo(_ document: ClientDocument) -> Bool {
        if document.hasLocalMutations { return false }
        return !synced.contains(document.key) || document.hasCommittedMutations && unconfirmed.contains(document.key)
    }
}
