import HearthTree

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
