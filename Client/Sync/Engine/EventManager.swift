import HearthModel

/// Connects listeners to queries. Listeners of one query share its view.
final class EventManager {
    private struct QueryState {
        var listeners: [QueryListener] = []
        var snapshot: ViewSnapshot?

        var listensToServer: Bool { listeners.contains { $0.listensToServer } }
    }

    private unowned let engine: SyncEngine
    private var queries: [ClientQuery: QueryState] = [:]
    private var onlineState = OnlineState.unknown
    private var inSyncListeners: [(id: ObjectIdentifier, onSync: () -> Void)] = []

    init(_ engine: SyncEngine) { self.engine = engine }

    /// Returns the target's id.
    @discardableResult
    func add(_ listener: QueryListener) throws(Status) -> Int32 {
        let old = queries[listener.query]
        var state = old ?? QueryState()
        let listenedToServer = state.listensToServer
        state.listeners.append(listener)
        queries[listener.query] = state
        var isRaised = listener.take(onlineState)
        if let snapshot = state.snapshot { isRaised = listener.take(snapshot) || isRaised }
        if isRaised { raiseInSync() }
        do throws(Status) {
            if old == nil {
                return try engine.listen(to: listener.query, listensToServer: listener.listensToServer)
            }
            if !listenedToServer, listener.listensToServer { try engine.listenToServer(listener.query) }
            return engine.targetID(of: listener.query)
        } catch {
            // Only for a transient failure of the cache: the other listeners of the query continue.
            if error.isPassing { queries[listener.query] = old }
            throw error
        }
    }

    func remove(_ listener: QueryListener) throws(Status) {
        guard var state = queries[listener.query],
            let index = state.listeners.firstIndex(where: { $0 === listener })
        else { return }
        state.listeners.remove(at: index)
        if state.listeners.isEmpty {
            queries[listener.query] = nil
            try engine.stop(listener.query)
            return
        }
        queries[listener.query] = state
        if listener.listensToServer, !state.listensToServer { try engine.stopServer(listener.query) }
    }

    // MARK: Snapshots in sync

    func addInSyncListener(_ id: ObjectIdentifier, _ onSync: @escaping () -> Void) {
        inSyncListeners.append((id, onSync))
        onSync()
    }

    func removeInSyncListener(_ id: ObjectIdentifier) { inSyncListeners.removeAll { $0.id == id } }

    private func raiseInSync() {
        for listener in inSyncListeners { listener.onSync() }
    }

    // MARK: From the engine

    func take(_ snapshots: [ViewSnapshot]) {
        var isRaised = false
        let version = engine.localStore.lastRemoteSnapshotVersion
        for var snapshot in snapshots {
            guard let state = queries[snapshot.query] else { continue }
            if !snapshot.isFromCache { snapshot.readTime = ViewSnapshot.ReadTime(version) }
            for listener in state.listeners where listener.take(snapshot) { isRaised = true }
            queries[snapshot.query]?.snapshot = snapshot
        }
        if isRaised { raiseInSync() }
    }

    func fail(_ query: ClientQuery, _ error: Status) {
        guard let state = queries.removeValue(forKey: query) else { return }
        for listener in state.listeners { listener.take(error) }
    }

    func failAll(_ error: Status) {
        for query in Array(queries.keys) { fail(query, error) }
    }

    /// The client ends: removes all listeners.
    func endAll() {
        let ended = queries.values.flatMap(\.listeners)
        queries = [:]
        inSyncListeners = []
        for listener in ended { listener.end() }
    }

    func take(_ state: OnlineState) {
        onlineState = state
        var isRaised = false
        for query in queries.values {
            for listener in query.listeners where listener.take(state) { isRaised = true }
        }
        if isRaised { raiseInSync() }
    }
}
