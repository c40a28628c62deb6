import HearthTree

/// Which events an observer wants. Empty for one that only keeps its place's data current.
struct EngineEventKinds: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    static let childRemoved = EngineEventKinds(rawValue: 1 << 0)
    static let childAdded = EngineEventKinds(rawValue: 1 << 1)
    static let childMoved = EngineEventKinds(rawValue: 1 << 2)
    static let childChanged = EngineEventKinds(rawValue: 1 << 3)
    static let value = EngineEventKinds(rawValue: 1 << 4)

    static let child: EngineEventKinds = [.childRemoved, .childAdded, .childMoved, .childChanged]
}

/// What an observer is told.
struct EngineEvent: Equatable, Sendable {
    /// The kinds in the order in which one change raises them.
    enum Kind: Int, Sendable, CaseIterable {
        case childRemoved, childAdded, childMoved, childChanged, value
    }

    var kind: Kind
    /// The place of `node`: the observed one, or that of the child.
    var path: TreePath
    /// The data: of a removed child the last that was seen. For a value its children are those of the query's window.
    var node: Node
    /// Of child events: the sibling in front, in the order of the query, after the change; nil for the first one, for removed
    /// children and for values.
    var previousKey: TreeKey?
    /// By which the children of `node` are ordered: the observed query for a value, by priority for a child.
    var query: TreeQuery
}

extension EngineEvent.Kind {
    var asSet: EngineEventKinds { EngineEventKinds(rawValue: 1 << UInt8(rawValue)) }
}

/// A refusal in the words of the wire protocol.
struct WireFailure: Error, Equatable, Sendable {
    /// `permission_denied`, `datastale`, `unavailable`, `write_canceled`, …
    var status: String
    /// What the server says about it; may be empty.
    var message: String

    init(_ status: String, _ message: String = "") {
        self.status = status
        self.message = message
    }

    static let permissionDenied = "permission_denied"
    static let staleData = "datastale"
    /// The connection was lost after the write had been sent; it may have been made.
    static let disconnected = "disconnect"
    static let cancelled = WireFailure("write_canceled", "Write cancelled by user")
    static let overriddenBySet = WireFailure("set")
    static let maxRetries = WireFailure("maxretry")
    static let offline = WireFailure("offline", "Client is offline.")
    static let tooLarge = WireFailure("too_big", "The write is larger than the 16 MiB of one request.")
    /// A write that waited may be on the disk, and is sent when the database is used again.
    static let closed = WireFailure("unavailable", "The database was closed with its app.")
}

/// Names an observer of one engine; never 0, never used twice.
struct ObserverID: Hashable, Sendable {
    let number: Int
}

/// How a transaction ended.
enum TransactionOutcome: Sendable {
    /// The server has it; `node` as far as its server values are known.
    case committed(Node)
    /// The function aborted; `node` is what it was called with last.
    case aborted(Node)
    case failed(WireFailure)
}
