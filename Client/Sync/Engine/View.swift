import HearthModel

/// One query's result as its listeners see it.
///
/// It works on changes only: the whole set is looked through once, when the server first is current.
final class View {
    enum SyncState { case none, local, synced }

    let query: ClientQuery
    private let matcher: ClientQueryMatcher
    private let comparator: DocumentComparator
    private(set) var documents: DocumentSet
    /// What the server named for the target.
    private(set) var synced: Set<ResourcePath>
    /// Documents that the cache holds to be in the view, while the server, being current, didn't name them.
    private(set) var limbo: Set<ResourcePath> = []
    private(set) var mutatedKeys: Set<ResourcePath> = []
    private(set) var isCurrent = false
    private(set) var syncState = SyncState.none
    /// The server is listened to for the target: its updates follow what it has acknowledged.
    var isTargetHeard = false
    /// Acknowledged states that aren't shown: the server's updates of the documents follow.
    private var awaited: [ResourcePath: ClientDocument] = [:]
    /// Documents that the server has named, and whose acknowledged states it should have named by now.
    private var unconfirmed: Set<ResourcePath> = []
    /// Changes went by that `limbo` doesn't reflect.
    private var isLimboStale = true

    init(_ query: ClientQuery, remoteKeys: Set<ResourcePath>) {
        self.query = query
        matcher = ClientQueryMatcher(query)
        comparator = query.comparator
        documents = DocumentSet(comparator: comparator)
        synced = remoteKeys
    }

    // MARK: Computing changes

    /// - Parameters:
    ///   - overdue: those of the documents whose update by the server doesn't come.
    ///   - previous: changes that needed a refill, to which these are added.
    func computeChanges(
        _ changed: [ResourcePath: ClientDocument], overdue: Set<ResourcePath> = [],
        after previous: ViewDocumentChanges? = nil
    ) -> ViewDocumentChanges {
        let old = previous?.documents ?? documents
        if isTargetHeard { unconfirmed.formUnion(overdue.intersection(synced)) }
        var result =
            previous ?? ViewDocumentChanges(documents: documents, mutatedKeys: mutatedKeys)
        result.needsRefill = false
        if previous == nil, old.isEmpty, changed.count > 1 {
            fill(&result, with: changed.values)
        } else {
            let edge = edgeOfFullSet(old)
            for (key, document) in changed {
                apply(document, key, old: old[key], edge: edge, isOverdue: overdue.contains(key), to: &result)
            }
        }
        cutToLimit(&result)
        precondition(previous == nil || !result.needsRefill, "a refilled view is full or has all")
        return result
    }

    /// The first documents, sorted at once.
    private func fill(_ result: inout ViewDocumentChanges, with documents: some Sequence<ClientDocument>) {
        let matching = documents.filter { matcher.matches($0) }
        result.documents = DocumentSet(matching, comparator: comparator)
        // In their order, in which they'll be told.
        for document in result.documents {
            result.changes.add(ViewSnapshot.Change(kind: .added, document: document))
            if document.hasLocalMutations { result.mutatedKeys.insert(document.key) }
        }
    }

    /// The last document of a full limit, or the first of a limit to the last ones.
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
        let isOverdue = isOverdue || !isTargetHeard
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

    /// The acknowledged state isn't shown: the server's update, which follows, is.
    private func waitsForSync(_ old: ClientDocument, _ new: ClientDocument) -> Bool {
        old.hasLocalMutations && new.hasCommittedMutations && !new.hasLocalMutations
    }

    var awaitsUpdates: Bool { !awaited.isEmpty }

    /// Acknowledged documents that the server, though its snapshot is newer, didn't name: others took them out of the result
    /// before it could, and what comes and goes between two snapshots isn't told. Shown as they are, they are in limbo, and
    /// looked up. So are those that the server names as they were before: it was restored from a backup and lost the write.
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

    /// - Parameter isPendingReset: the target is listened to anew, because the server has fewer documents than we.
    func apply(
        _ changes: ViewDocumentChanges, _ targetChange: TargetChange? = nil, isPendingReset: Bool = false
    ) -> ViewOutcome {
        precondition(!changes.needsRefill, "refilled before it is applied")
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

    /// Without a connection nothing is current.
    func applyOffline() -> ViewOutcome {
        guard isCurrent else { return ViewOutcome() }
        isCurrent = false
        return apply(ViewDocumentChanges(documents: documents, mutatedKeys: mutatedKeys))
    }

    /// The server isn't listened to any more; nothing is current then, and nothing is looked up.
    /// - Returns: acknowledged documents that are to be shown as they are, since no update of the server follows.
    func endOfServer() -> [ResourcePath: ClientDocument] {
        isTargetHeard = false
        unconfirmed = []
        isCurrent = false
        limbo = []
        defer { awaited = [:] }
        return awaited
    }

    /// The target has changed, while the view's documents can't be worked out.
    func note(_ change: TargetChange) {
        take(change)
        isLimboStale = true
    }

    private func take(_ change: TargetChange) {
        synced.formUnion(change.added)
        synced.subtract(change.removed)
        isCurrent = change.isCurrent
    }

    /// The set of documents in limbo depends on the view's documents and the synced keys: only where one of these
    /// changed can it change, unless changes went by unseen.
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
        var keys = Set(changes.changes.changes.keys)
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
