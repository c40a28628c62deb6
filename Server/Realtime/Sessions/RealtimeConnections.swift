import HearthHost
import HearthModel

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
