import HearthTree

/// The events that an observer wants. Empty for an observer that only keeps its location's data current.
struct EngineEventKinds: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    static let childRemoved = EngineEventKinds(rawValue: 1 << 0)
    static let childAdded = EngineEventKinds(rawValue: 1 << 1)
    static let childMoved = EngineEventKinds(rawValue: 1 << 2)
    static let childChanged = EngineEventKinds(rawValue: 1 << 3)
    static let value = EngineEventKinds(rawValue: 1 << 4)

    static let child: EngineEventKinds = [.childRemoved, .childAdded, .childMoved, .childChanged]
}

/// An event for an observer.
struct EngineEvent: Equatable, Sendable {
    /// The kinds in the order of the events of one change.
    enum Kind: Int, Sendable, CaseIterable {
        case childRemoved, childAdded, childMoved, childChanged, value
    }

    var kind: Kind
    /// The location of `node`: the observed one, or that of the child.
    var path: TreePath
    /// The data. A removed child has its last known data. The children of a value are those of the query's window.
    var node: Node
    /// For child events: the previous sibling in the order of the query, after the change. Nil for the first child,
    /// for removed children and for values.
    var previousKey: TreeKey?
    /// The order of the children of `node`: that of the observed query for a value, by priority for a child.
    var query: TreeQuery
}

extension EngineEvent.Kind {
    var asSet: EngineEventKinds { EngineEventKinds(rawValue: 1 << UInt8(rawValue)) }
}

/// An error of the wire protocol.
struct WireFailure: Error, Equatable, Sendable {
    /// `permission_denied`, `datastale`, `unavailable`, `write_canceled`, …
    var status: String
    /// The server's message; may be empty.
    var message: String

    init(_ status: String, _ message: String = "") {
        self.status = status
        self.message = message
    }

    static let permissionDenied = "permission_denied"
    static let staleData = "datastale"
    /// The connection was lost after the write had been sent; the server may have made it.
    static let disconnected = "disconnect"
    static let cancelled = WireFailure("write_canceled", "Write cancelled by user")
    static let overriddenBySet = WireFailure("set")
    static let maxRetries = WireFailure("maxretry")
    static let offline = WireFailure("offline", "Client is offline.")
    static let tooLarge = WireFailure("too_big", "The write is larger than the 16 MiB of one request.")
    /// A waiting write may be on disk, and is sent when the database is used again.
    static let closed = WireFailure("unavailable", "The database was closed with its app.")
}

/// Identifies an observer of one engine; never 0, never used twice.
struct ObserverID: Hashable, Sendable {
    let number: Int
}

/// The result of a transaction.
enum TransactionOutcome: Sendable {
    /// The server has the data; `node` is complete except for unknown server values.
    case committed(Node)
    /// The function aborted; `node` is the data that it received last.
    case aborted(Node)
    case failed(WireFailure)
}
