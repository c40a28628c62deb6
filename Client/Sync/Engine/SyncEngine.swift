import HearthModel

/// Connects the local store, the views and the remote store. All calls come from the worker queue.
final class SyncEngine {
    struct QueryView {
        var targetID: Int32
        var view: View
        /// Some of its listeners need the server's state, not only the cache.
        var listensToServer = false
    }

    let localStore: LocalStore
    let remoteStore: RemoteStore
    private(set) var eventManager: EventManager!
    var user: ClientUser
    private var views: [ClientQuery: QueryView] = [:]
    private var queriesByPath = QueriesByPath()
    /// The queries that share a target: a limit to the first in one order is a limit to the last in the reverse order.
    private var viewsOfTarget: [Int32: [View]] = [:]
    /// Queries whose views wait for the server's updates of acknowledged writes.
    private var awaiting: Set<ClientQuery> = []
    let limbo: LimboTracker
    var writeCompletions: [ClientUser: [Int: (Status?) -> Void]] = [:]
    var pendingWriteWaiters: [Int: [(Status?) -> Void]] = [:]
    let pendingWrites = PendingWriteCounter()
    /// The local store failed. The state of this instance is no longer valid.
    private(set) var failure: Status?
    var overlayTimer: WorkerQueue.Delayed?
    /// See `pause`.
    var pause = CachePause()
    var onWarning: @Sendable (String) -> Void = { _ in }

    init(_ localStore: LocalStore, _ remoteStore: RemoteStore, user: ClientUser, limboResolutionsMax: Int) {
        self.localStore = localStore
        self.remoteStore = remoteStore
        self.user = user
        limbo = LimboTracker(resolutionsMax: limboResolutionsMax)
        eventManager = EventManager(self)
        remoteStore.engine = self
    }

    /// Runs a change that may fail in the local store.
    func attempt(_ body: () throws(Status) -> Void) {
        if failure != nil { return }
        do throws(Status) { try body() } catch { take(error) }
    }

    /// Runs a change that is repeated later if it fails.
    func attemptQuietly(_ body: () throws(Status) -> Void) {
        if failure != nil { return }
        do throws(Status) { try body() } catch { if !error.isPassing { fail(error) } }
    }

    /// Handles a failure of the local store that no caller waits for, or that was already reported to the caller.
    func take(_ error: Status) {
        if error.isPassing { beginPause(because: error) } else { fail(error) }
    }

    func fail(_ error: Status) {
        guard failure == nil else { return }
        failure = error
        pause.end()
        remoteStore.shutDown()
        eventManager.failAll(error)
        pendingWrites.end(error)
        failWrites(error)
        onWarning("The cache failed, and the client has ended: \(error)")
    }

    /// The client ends: every waiting caller receives the error, and all references are released.
    func end() {
        // If the outcomes were not stored, a later run would send the writes again.
        attemptQuietly { () throws(Status) in
            try settleWrites()
            _ = try localStore.settleOverlays()
        }
        pause.end()
        overlayTimer?.cancel()
        remoteStore.shutDown()
        eventManager.endAll()
        pendingWrites.end(nil)
        failWrites(Self.endedBeforeAnswer)
    }

    static let endedBeforeAnswer = Status(
        .cancelled,
        "The client was terminated before the server answered. What is in a cache on the disk is sent when a client "
            + "of the same app starts again.")

    /// Goes online.
    func start() throws(Status) { remoteStore.enableNetwork() }

    // MARK: Listening

    func targetID(of query: ClientQuery) -> Int32 { views[query]?.targetID ?? 0 }

    /// Makes the query's view and delivers its first snapshot.
    func listen(to query: ClientQuery, listensToServer: Bool) throws(Status) -> Int32 {
        let data = try localStore.allocate(query.target)
        let snapshot: ViewSnapshot
        do throws(Status) { snapshot = try makeView(query, data) } catch {
            if viewsOfTarget[data.targetID] == nil { try localStore.release(data.targetID) }
            throw error
        }
        eventManager.take([snapshot])
        if listensToServer { beginListening(query, data) }
        return data.targetID
    }

    private func makeView(_ query: ClientQuery, _ data: TargetData) throws(Status) -> ViewSnapshot {
        let (documents, remoteKeys) = try localStore.execute(query, usesPreviousResults: true)
        let siblings = viewsOfTarget[data.targetID] ?? []
        var change = TargetChange(resumeToken: data.resumeToken)
        change.isCurrent = siblings.contains { $0.syncState == .synced }
        let view = View(query, remoteKeys: remoteKeys)
        view.isTargetActive = siblings.contains { $0.isTargetActive }
        let outcome = view.apply(view.computeFirst(documents), change)
        views[query] = QueryView(targetID: data.targetID, view: view)
        queriesByPath.insert(query)
        viewsOfTarget[data.targetID, default: []].append(view)
        trackLimbo(outcome, of: data.targetID)
        guard let snapshot = outcome.snapshot else { preconditionFailure("the first state of a view has a snapshot") }
        localStore.retain(ViewChange(snapshot, targetID: data.targetID).added, for: data.targetID)
        return snapshot
    }

    /// Starts to listen at the server for a view that had only cache listeners.
    func listenToServer(_ query: ClientQuery) throws(Status) {
        beginListening(query, try localStore.allocate(query.target))
    }

    private func beginListening(_ query: ClientQuery, _ data: TargetData) {
        views[query]?.listensToServer = true
        for view in viewsOfTarget[data.targetID] ?? [] { view.isTargetActive = true }
        remoteStore.listen(to: data)
    }

    /// The query has no listeners any more.
    func stop(_ query: ClientQuery) throws(Status) {
        guard let queryView = views[query] else { return }
        let targetID = queryView.targetID
        forget(query)
        let others = viewsOfTarget[targetID, default: []].filter { $0 !== queryView.view }
        viewsOfTarget[targetID] = others.isEmpty ? nil : others
        if others.isEmpty {
            if queryView.listensToServer { remoteStore.stopListening(to: targetID) }
            try localStore.release(targetID)
            dropLimbo(of: targetID)
        } else if queryView.listensToServer {
            try endListening(targetID)
        }
    }

    private func forget(_ query: ClientQuery) {
        views[query] = nil
        queriesByPath.remove(query)
        awaiting.remove(query)
    }

    /// The view remains for cache listeners.
    func stopServer(_ query: ClientQuery) throws(Status) {
        guard let targetID = views[query]?.targetID else { return }
        views[query]?.listensToServer = false
        try endListening(targetID)
    }

    /// The client listens at the server as long as any query of the target does. The documents that remain come from
    /// the cache: the view is not current, and no update of the server follows for acknowledged writes.
    private func endListening(_ targetID: Int32) throws(Status) {
        let left = (viewsOfTarget[targetID] ?? []).map(\.query)
        if left.contains(where: { views[$0]?.listensToServer == true }) { return }
        remoteStore.stopListening(to: targetID)
        try notify { notified throws(Status) in
            for query in left {
                guard let view = views[query]?.view else { continue }
                let acknowledged = view.endOfServer()
                update(query, view, targetID, acknowledged, overdue: Set(acknowledged.keys), to: &notified)
            }
        }
        dropLimbo(of: targetID)
    }

    // MARK: Documents changed

    private struct NotifiedViews {
        var snapshots: [ViewSnapshot] = []
        var changes: [ViewChange] = []
        /// The failure to read the local store for some of the views.
        var failure: Status?
    }

    /// Applies changed documents to all views and notifies the listeners.
    func emit(_ changed: [ResourcePath: ClientDocument], _ event: RemoteEvent? = nil) throws(Status) {
        try notify { notified throws(Status) in
            for query in queries(touchedBy: changed.keys, event) {
                guard let queryView = views[query] else { continue }
                let view = queryView.view
                let targetChange = event?.targetChanges[queryView.targetID]
                let isPendingReset = event?.targetMismatches[queryView.targetID] != nil
                let overdue = event.map { view.overdue(at: $0.snapshotVersion, targetChange) } ?? [:]
                update(
                    query, view, queryView.targetID, changed.merging(overdue) { news, _ in news },
                    overdue: Set(overdue.keys.filter { changed[$0] == nil }), targetChange,
                    isPendingReset: isPendingReset, to: &notified)
            }
        }
    }

    /// Checks only the views whose result may change: a client may have thousands.
    private func queries(
        touchedBy keys: some Collection<ResourcePath>, _ event: RemoteEvent?
    ) -> Set<ClientQuery> {
        var queries = awaiting
        if let event {
            for targetID in Set(event.targetChanges.keys).union(event.targetMismatches.keys) {
                for view in viewsOfTarget[targetID] ?? [] { queries.insert(view.query) }
            }
        }
        return queries.union(queriesByPath.queries(of: keys))
    }

    /// Brings all views up to date with the local store. They may have missed changes.
    func renewViews() throws(Status) {
        try notify { notified throws(Status) in
            for (query, queryView) in views {
                let (documents, _) = try localStore.execute(query, usesPreviousResults: false)
                var changed = documents.byKey
                // Documents that the view shows and that the cache no longer returns for the query.
                let missing = Set(queryView.view.documents.map(\.key)).subtracting(changed.keys)
                changed.merge(try localStore.documents(missing)) { $1 }
                update(query, queryView.view, queryView.targetID, changed, overdue: Set(changed.keys), to: &notified)
            }
        }
    }

    private func update(
        _ query: ClientQuery, _ view: View, _ targetID: Int32, _ changed: [ResourcePath: ClientDocument],
        overdue: Set<ResourcePath>, _ targetChange: TargetChange? = nil, isPendingReset: Bool = false,
        to notified: inout NotifiedViews
    ) {
        var changes = view.computeChanges(changed, overdue: overdue)
        if changes.needsRefill {
            do throws(Status) {
                let (documents, _) = try localStore.execute(query, usesPreviousResults: false)
                changes = view.computeChanges(documents.byKey, after: changes)
            } catch {
                // The other views continue. The server does not repeat its report on the target.
                if let targetChange { view.note(targetChange) }
                if notified.failure == nil { notified.failure = error }
                return
            }
        }
        let outcome = view.apply(changes, targetChange, isPendingReset: isPendingReset)
        if view.awaitsUpdates { awaiting.insert(query) } else { awaiting.remove(query) }
        trackLimbo(outcome, of: targetID)
        if let snapshot = outcome.snapshot {
            notified.snapshots.append(snapshot)
            notified.changes.append(ViewChange(snapshot, targetID: targetID))
        }
    }

    /// Changes views and notifies their listeners, also when the local store cannot be read for one of them. In that
    /// case all views are computed again when it can be read.
    private func notify(_ change: (inout NotifiedViews) throws(Status) -> Void) throws(Status) {
        var notified = NotifiedViews()
        do throws(Status) { try change(&notified) } catch { notified.failure = error }
        eventManager.take(notified.snapshots)
        try localStore.notify(notified.changes)
        guard let failure = notified.failure else { return }
        pause.hasStaleViews = true
        take(failure)
    }

    func apply(_ event: RemoteEvent) throws(Status) {
        let changed = try localStore.apply(event)
        limbo.note(event.targetChanges)
        pause.over()
        try emit(changed, event)
    }

    func take(_ state: OnlineState) {
        var snapshots: [ViewSnapshot] = []
        if state == .offline {
            for queryView in views.values {
                let outcome = queryView.view.applyOffline()
                precondition(
                    outcome.limboAdded.isEmpty && outcome.limboRemoved.isEmpty,
                    "only current views have limbo documents")
                if let snapshot = outcome.snapshot { snapshots.append(snapshot) }
            }
        }
        eventManager.take(snapshots)
        eventManager.take(state)
    }

    // MARK: Targets

    /// The keys that the server has sent for a target, as far as the client knows.
    func remoteKeys(of targetID: Int32) -> Set<ResourcePath> {
        if let resolution = limbo.resolution(targetID) { return resolution.isReceived ? [resolution.key] : [] }
        guard let views = viewsOfTarget[targetID] else { return [] }
        if views.count == 1 { return views[0].synced }
        var keys: Set<ResourcePath> = []
        for view in views { keys.formUnion(view.synced) }
        return keys
    }

    /// The server rejected a listen.
    func rejectListen(_ targetID: Int32, _ error: Status) throws(Status) {
        if let resolution = limbo.end(targetID) {
            pumpLimbo()
            // The state of the document is unknown.
            var event = RemoteEvent()
            event.documentUpdates[resolution.key] = ClientDocument(key: resolution.key, kind: .missing)
            event.limboDocumentChanges = [resolution.key]
            pause.events.append(event)
            try settleEvents()
            return
        }
        let queries = (viewsOfTarget.removeValue(forKey: targetID) ?? []).map(\.query)
        for query in queries {
            forget(query)
        }
        if error.code == .permissionDenied || error.code == .failedPrecondition {
            for query in queries { onWarning("Listening to \(Self.name(of: query)) failed: \(error)") }
        }
        try localStore.release(targetID)
        for query in queries { eventManager.fail(query, error) }
        dropLimbo(of: targetID)
    }

    /// The name of a query in messages for users.
    private static func name(of query: ClientQuery) -> String {
        guard let group = query.collectionGroup else { return query.path.string }
        return "the collection group \(group)" + (query.path.isRoot ? "" : " below \(query.path.string)")
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
