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
