import HearthModel

/// Brings the local store, the views and the remote store together. All calls come from the worker queue.
final class SyncEngine {
    struct QueryView {
        var targetID: Int32
        var view: View
    }

    let localStore: LocalStore
    let remoteStore: RemoteStore
    private(set) var eventManager: EventManager!
    var user: ClientUser
    private var views: [ClientQuery: QueryView] = [:]
    private var viewsOfTarget: [Int32: [View]] = [:]
    let limbo: LimboTracker
    var writeCompletions: [ClientUser: [Int: (Status?) -> Void]] = [:]
    var pendingWriteWaiters: [Int: [(Status?) -> Void]] = [:]
    /// The local store failed: nothing of this instance can be trusted any more.
    private(set) var failure: Status?
    var onWarning: @Sendable (String) -> Void = { _ in }

    init(_ localStore: LocalStore, _ remoteStore: RemoteStore, user: ClientUser, limboResolutionsMax: Int) {
        self.localStore = localStore
        self.remoteStore = remoteStore
        self.user = user
        limbo = LimboTracker(resolutionsMax: limboResolutionsMax)
        eventManager = EventManager(self)
        remoteStore.engine = self
    }

    /// Does something that the local store may fail at.
    func attempt(_ body: () throws(Status) -> Void) {
        if failure != nil { return }
        do throws(Status) { try body() } catch { fail(error) }
    }

    func fail(_ error: Status) {
        guard failure == nil else { return }
        failure = error
        remoteStore.shutDown()
        eventManager.failAll(error)
        let completions = writeCompletions.values.flatMap(\.values) + pendingWriteWaiters.values.joined()
        writeCompletions = [:]
        pendingWriteWaiters = [:]
        for completion in completions { completion(error) }
        onWarning("The cache failed, and nothing works any more: \(error)")
    }

    /// Goes online.
    func start() throws(Status) { remoteStore.enableNetwork() }

    // MARK: Listening

    func targetID(of query: ClientQuery) -> Int32 { views[query]?.targetID ?? 0 }

    /// Makes the query's view and tells its first snapshot.
    func listen(to query: ClientQuery, listensToServer: Bool) throws(Status) -> Int32 {
        let data = try localStore.allocate(query.target)
        let snapshot = try makeView(query, data)
        eventManager.take([snapshot])
        if listensToServer { remoteStore.listen(to: data) }
        return data.targetID
    }

    private func makeView(_ query: ClientQuery, _ data: TargetData) throws(Status) -> ViewSnapshot {
        let (documents, remoteKeys) = try localStore.execute(query, usesPreviousResults: true)
        var change = TargetChange(resumeToken: data.resumeToken)
        if let sibling = viewsOfTarget[data.targetID]?.first { change.isCurrent = sibling.syncState == .synced }
        let view = View(query, remoteKeys: remoteKeys)
        let outcome = view.apply(view.computeChanges(documents), change)
        views[query] = QueryView(targetID: data.targetID, view: view)
        viewsOfTarget[data.targetID, default: []].append(view)
        trackLimbo(outcome, of: data.targetID)
        guard let snapshot = outcome.snapshot else { preconditionFailure("a view's first state is news") }
        return snapshot
    }

    /// Begins to listen at the server for a view that had cache listeners only.
    func listenToServer(_ query: ClientQuery) throws(Status) {
        remoteStore.listen(to: try localStore.allocate(query.target))
    }

    /// - Parameter stopsServer: whether this query was listened to at the server.
    func stop(_ query: ClientQuery, stopsServer: Bool) throws(Status) {
        guard let (targetID, view) = views.removeValue(forKey: query).map({ ($0.targetID, $0.view) }) else { return }
        let others = viewsOfTarget[targetID, default: []].filter { $0 !== view }
        guard others.isEmpty else {
            viewsOfTarget[targetID] = others
            return
        }
        viewsOfTarget[targetID] = nil
        if stopsServer { remoteStore.stopListening(to: targetID) }
        try localStore.release(targetID)
        dropLimbo(of: targetID)
    }

    /// The view stays for cache listeners.
    func stopServer(_ query: ClientQuery) {
        guard let view = views[query] else { return }
        remoteStore.stopListening(to: view.targetID)
    }

    // MARK: Documents changed

    /// Brings changed documents into all views, and tells the listeners.
    func emit(_ changed: [ResourcePath: ClientDocument], _ event: RemoteEvent? = nil) throws(Status) {
        var snapshots: [ViewSnapshot] = []
        var viewChanges: [ViewChange] = []
        for (query, queryView) in views {
            let view = queryView.view
            let targetChange = event?.targetChanges[queryView.targetID]
            let overdue = event.map { view.overdue(at: $0.snapshotVersion, targetChange) } ?? [:]
            var changes = view.computeChanges(
                changed.merging(overdue) { news, _ in news },
                overdue: Set(overdue.keys.filter { changed[$0] == nil }))
            if changes.needsRefill {
                let (documents, _) = try localStore.execute(query, usesPreviousResults: false)
                changes = view.computeChanges(documents, after: changes)
            }
            let outcome = view.apply(
                changes, targetChange,
                isPendingReset: event?.targetMismatches[queryView.targetID] != nil)
            trackLimbo(outcome, of: queryView.targetID)
            if let snapshot = outcome.snapshot {
                snapshots.append(snapshot)
                viewChanges.append(ViewChange(snapshot, targetID: queryView.targetID))
            }
        }
        eventManager.take(snapshots)
        try localStore.notify(viewChanges)
    }

    func apply(_ event: RemoteEvent) throws(Status) {
        limbo.note(event.targetChanges)
        let changed = try localStore.apply(event)
        try emit(changed, event)
    }

    func take(_ state: OnlineState) {
        var snapshots: [ViewSnapshot] = []
        if state == .offline {
            for queryView in views.values {
                let outcome = queryView.view.applyOffline()
                precondition(outcome.limboAdded.isEmpty && outcome.limboRemoved.isEmpty, "limbo is for current views")
                if let snapshot = outcome.snapshot { snapshots.append(snapshot) }
            }
        }
        eventManager.take(snapshots)
        eventManager.take(state)
    }

    // MARK: Targets

    /// What the server has named for a target, as far as the client knows.
    func remoteKeys(of targetID: Int32) -> Set<ResourcePath> {
        if let resolution = limbo.resolution(targetID) { return resolution.isReceived ? [resolution.key] : [] }
        guard let views = viewsOfTarget[targetID] else { return [] }
        if views.count == 1 { return views[0].synced }
        var keys: Set<ResourcePath> = []
        for view in views { keys.formUnion(view.synced) }
        return keys
    }

    /// The server refused a listen.
    func rejectListen(_ targetID: Int32, _ error: Status) throws(Status) {
        if let resolution = limbo.end(targetID) {
            pumpLimbo()
            // Nothing is known of the document any more.
            var event = RemoteEvent()
            event.documentUpdates[resolution.key] = ClientDocument(key: resolution.key, kind: .missing)
            event.limboDocumentChanges = [resolution.key]
            try apply(event)
            return
        }
        let queries = (viewsOfTarget.removeValue(forKey: targetID) ?? []).map(\.query)
        for query in queries { views[query] = nil }
        if error.code == .permissionDenied || error.code == .failedPrecondition {
            for query in queries { onWarning("Listening to \(Self.name(of: query)) was refused: \(error)") }
        }
        try localStore.release(targetID)
        for query in queries { eventManager.fail(query, error) }
        dropLimbo(of: targetID)
    }

    /// What a person calls a query.
    private static func name(of query: ClientQuery) -> String {
        guard let group = query.collectionGroup else { return query.path.text }
        return "the collection group \(group)" + (query.path.isRoot ? "" : " below \(query.path.text)")
    }

    // MARK: Limbo

    private func trackLimbo(_ outcome: ViewOutcome, of targetID: Int32) {
        for key in outcome.limboRemoved {
            if let ended = limbo.removeReference(key, from: targetID) { remoteStore.stopListening(to: ended) }
        }
        for key in outcome.limboAdded { limbo.addReference(key, from: targetID) }
        pumpLimbo()
    }

    private func dropLimbo(of targetID: Int32) {
        for ended in limbo.removeReferences(of: targetID) { remoteStore.stopListening(to: ended) }
        pumpLimbo()
    }

    private func pumpLimbo() {
        while let (targetID, key) = limbo.startNext() {
            remoteStore.listen(
                to: TargetData(
                    target: ClientQuery(path: key).target, targetID: targetID, purpose: .limboResolution,
                    sequenceNumber: -1))
        }
    }
}

extension ViewChange {
    init(_ snapshot: ViewSnapshot, targetID: Int32) {
        self.init(targetID: targetID, isFromCache: snapshot.isFromCache, added: [], removed: [])
        for change in snapshot.changes {
            switch change.kind {
            case .added: added.insert(change.document.key)
            case .removed: removed.insert(change.document.key)
            case .modified, .metadata: break
            }
        }
    }
}
