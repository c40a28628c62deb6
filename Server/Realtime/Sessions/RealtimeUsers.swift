import HearthHost
import HearthModel
import HearthNetwork
import Synchronization

/// A connection that stays open while a namespace changes.
protocol RealtimeUser: AnyObject, Sendable {
    var loop: EventLoop { get }
    /// Other rules are in force. Is called on the loop.
    func rulesChanged()
    /// Ends, because there are too many. Is called on the loop.
    func makeSpace()
}

/// The sockets and event streams of all namespaces: their number is limited, so that connections are left for requests.
final class RealtimeConnections: Sendable {
    static let tooMany = Status.unavailable("The server has too many connections.")

    private let table = SessionTable<any RealtimeUser>(sessionsMax: Limits.realtimeConnectionsMax)

    /// False when there is no connection that may be ended for this one.
    func admit(_ user: any RealtimeUser, id: String, for requester: Requester, rank: SessionRank) -> Bool {
        guard case .admitted(let dropped) = table.add(user, id: id, for: requester, rank: rank) else { return false }
        if let dropped { dropped.loop.execute { dropped.makeSpace() } }
        return true
    }

    func change(_ id: String, to rank: SessionRank) { table.change(id, to: rank) }
    func change(_ id: String, to requester: Requester) { table.change(id, to: requester) }
    func remove(_ id: String) { table.remove(id) }
}

/// The connections of a namespace: sockets and event streams.
package final class RealtimeUsers: Sendable {
    private struct State {
        var users: [ObjectIdentifier: any RealtimeUser] = [:]
        var sessions: [String: RealtimeSession] = [:]
    }

    private let state = Mutex(State())

    package var isEmpty: Bool { state.withLock { $0.users.isEmpty } }
    var count: Int { state.withLock { $0.users.count } }

    func add(_ user: any RealtimeUser) {
        state.withLock { state in
            state.users[ObjectIdentifier(user)] = user
            if let session = user as? RealtimeSession { state.sessions[session.id] = session }
        }
    }

    func remove(_ user: any RealtimeUser) {
        state.withLock { state in
            state.users[ObjectIdentifier(user)] = nil
            if let session = user as? RealtimeSession { state.sessions[session.id] = nil }
        }
    }

    func session(_ id: String) -> RealtimeSession? { state.withLock { $0.sessions[id] } }

    /// Must be called when other rules are in force.
    func rulesChanged() {
        let users = state.withLock { Array($0.users.values) }
        for user in users { user.loop.execute { user.rulesChanged() } }
    }
}
