import HearthModel

/// Decides which of a view's snapshots a listener receives.
final class QueryListener {
    let query: ClientQuery
    let options: SyncClient.ListenOptions
    private let onEvent: (Result<ViewSnapshot, Status>) -> Void
    private let onEnd: () -> Void
    private var hasRaisedFirstEvent = false
    private var onlineState = OnlineState.unknown
    private var snapshot: ViewSnapshot?

    /// - Parameter onEnd: runs when the client has ended. No event follows.
    init(
        _ query: ClientQuery, _ options: SyncClient.ListenOptions, onEnd: @escaping () -> Void = {},
        onEvent: @escaping (Result<ViewSnapshot, Status>) -> Void
    ) {
        self.query = query
        self.options = options
        self.onEnd = onEnd
        self.onEvent = onEvent
    }

    var listensToServer: Bool { options.source == .default }

    /// Returns whether an event was raised.
    func take(_ snapshot: ViewSnapshot) -> Bool {
        var snapshot = snapshot
        if !options.includesDocumentMetadataChanges {
            // An empty removal would copy the changes.
            if snapshot.changes.contains(where: { $0.kind == .metadata }) {
                snapshot.changes.removeAll { $0.kind == .metadata }
            }
            snapshot.excludesMetadataChanges = true
        }
        var isRaised = false
        if !hasRaisedFirstEvent {
            if shouldRaiseFirstEvent(snapshot) {
                raiseFirstEvent(snapshot)
                isRaised = true
            }
        } else if shouldRaiseEvent(snapshot) {
            onEvent(.success(snapshot))
            isRaised = true
        }
        self.snapshot = snapshot
        return isRaised
    }

    func take(_ error: Status) { onEvent(.failure(error)) }

    func end() { onEnd() }

    /// Returns whether an event was raised.
    func take(_ state: OnlineState) -> Bool {
        onlineState = state
        guard let snapshot, !hasRaisedFirstEvent, shouldRaiseFirstEvent(snapshot) else { return false }
        raiseFirstEvent(snapshot)
        return true
    }

    private func shouldRaiseFirstEvent(_ snapshot: ViewSnapshot) -> Bool {
        if !snapshot.isFromCache || !listensToServer { return true }
        if options.waitsForSyncWhenOnline, onlineState != .offline { return false }
        return !snapshot.documents.isEmpty || snapshot.hasCachedResults || onlineState == .offline
    }

    private func shouldRaiseEvent(_ snapshot: ViewSnapshot) -> Bool {
        if !snapshot.changes.isEmpty { return true }
        let pendingChanged = self.snapshot.map { $0.hasPendingWrites != snapshot.hasPendingWrites } ?? false
        return (snapshot.syncStateChanged || pendingChanged) && options.includesQueryMetadataChanges
    }

    /// For the listener every document is new.
    private func raiseFirstEvent(_ snapshot: ViewSnapshot) {
        precondition(!hasRaisedFirstEvent, "the first event is raised only once")
        hasRaisedFirstEvent = true
        var first = snapshot
        first.oldDocuments = DocumentSet(comparator: snapshot.documents.comparator)
        // A view's first snapshot has these changes already.
        if !snapshot.oldDocuments.isEmpty || snapshot.changes.count != snapshot.documents.count {
            first.changes = snapshot.documents.map { ViewSnapshot.Change(kind: .added, document: $0) }
        }
        first.syncStateChanged = true
        onEvent(.success(first))
    }
}
