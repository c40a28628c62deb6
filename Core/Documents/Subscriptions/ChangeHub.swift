import HearthModel
import Synchronization

/// Receives commits that concern the documents that it watches.
package protocol ChangeReceiver: AnyObject, Sendable {
    /// Is notified of commits in order, on the writer's thread, under the hub's lock: passes them on and returns.
    func receive(_ event: ChangeEvent)
}

package enum ChangeEvent: Sendable {
    /// - Parameter scopes: those of each change's document, which are the same for all.
    case committed(ChangeSet, scopes: [[WatchScope]])
    /// Everything was deleted, by a commit that leaves no history.
    case cleared(version: Int64)
    /// The database is closed, with the reason.
    case closed(Status)
}

/// Notifies the receivers that each commit may concern.
///
/// A commit looks up its documents' scopes, so unwatched documents cost nothing, and receivers that watch other
/// collections cost nothing either. A receiver represents many listeners: those of one event loop.
package final class ChangeHub: Sendable {
    private struct Entry {
        var receiver: any ChangeReceiver
        var uses: Int
    }

    private struct State {
        /// All commits up to this version have been delivered.
        var version: Int64
        var scopes: [WatchScope: [ObjectIdentifier: Entry]] = [:]
        var isClosed = false
    }

    private let state: Mutex<State>
    /// Which collections the delivered commits changed.
    let history: FeedIndex

    init(version: Int64, feed: SharedCacheBytes) {
        state = Mutex(State(version: version))
        history = FeedIndex(after: version, shared: feed)
    }

    /// Begins to watch.
    /// - Returns: false when the database is closed.
    package func add(_ scopes: [WatchScope], for receiver: any ChangeReceiver) -> Bool {
        state.withLock { state in
            if state.isClosed { return false }
            for scope in scopes {
                state.scopes[scope, default: [:]][
                    ObjectIdentifier(receiver), default: Entry(receiver: receiver, uses: 0)
                ]
                .uses += 1
            }
            return true
        }
    }

    /// Ends the watch that one call of `add` began.
    package func remove(_ scopes: [WatchScope], for receiver: any ChangeReceiver) {
        state.withLock { state in
            let id = ObjectIdentifier(receiver)
            for scope in scopes {
                guard let uses = state.scopes[scope]?[id]?.uses else { continue }
                if uses > 1 {
                    state.scopes[scope]?[id]?.uses = uses - 1
                } else {
                    state.scopes[scope]?[id] = nil
                    if state.scopes[scope]?.isEmpty == true { state.scopes[scope] = nil }
                }
            }
        }
    }

    /// Runs `body` with the version up to which all commits have been delivered, before any later one is.
    package func withVersion(_ body: (Int64) -> Void) {
        state.withLock { body($0.version) }
    }

    // MARK: The writer's thread

    func committed(_ set: ChangeSet) {
        // Before listeners are notified: they may request the changes.
        history.append(set)
        state.withLock { state in
            state.version = set.version
            if state.scopes.isEmpty { return }
            var receivers: [ObjectIdentifier: any ChangeReceiver] = [:]
            func collect(_ scope: WatchScope) {
                guard let entries = state.scopes[scope] else { return }
                for (id, entry) in entries { receivers[id] = entry.receiver }
            }
            let scopes = set.changes.map { Self.scopes(of: $0.key) }
            for each in scopes { for scope in each { collect(scope) } }
            for receiver in receivers.values { receiver.receive(.committed(set, scopes: scopes)) }
        }
    }

    func cleared(version: Int64) {
        history.reset(to: version)
        notifyAll(.cleared(version: version)) { $0.version = version }
    }

    func closed(_ reason: Status) { notifyAll(.closed(reason)) { $0.isClosed = true } }

    private func notifyAll(_ event: ChangeEvent, _ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            var receivers: [ObjectIdentifier: any ChangeReceiver] = [:]
            for entries in state.scopes.values { for (id, entry) in entries { receivers[id] = entry.receiver } }
            for receiver in receivers.values { receiver.receive(event) }
        }
    }

    /// The scopes that a document belongs to.
    package static func scopes(of key: [UInt8]) -> [WatchScope] {
        var scopes: [WatchScope] = [.document(key), .everything]
        if let prefix = DocumentKey.collectionPrefix(of: key) { scopes.append(.collection(prefix)) }
        if let group = group(of: key) { scopes.append(group) }
        return scopes
    }

    /// All collections with the id of the collection that a document is in.
    static func group(of key: [UInt8]) -> WatchScope? {
        var position = 0
        var start = 0
        while position < key.count, key[position] != IndexValue.Tag.terminator {
            guard let end = DocumentKey.segmentEnd(key, position) else { return nil }
            start = position
            position = end
        }
        guard position < key.count, let id = DocumentKey.readSegment(key, &start) else { return nil }
        return .collectionGroup(Array(id.utf8))
    }
}

extension Query {
    /// The narrowest scope that contains all documents in the query's scope.
    var watchScope: WatchScope {
        switch scope {
        case .collection(let id): .collection(DocumentKey.collectionPrefix(parent.path.appending(id)))
        case .collectionGroup(let id): .collectionGroup(Array(id.utf8))
        case .anyCollection, .allDescendants: .everything
        }
    }
}
