/// The kinds of events that an observer of a query receives. One change causes `childRemoved`, `childAdded`,
/// `childMoved`, `childChanged` and `value`, in this order.
public enum DataEventType: Int, Sendable {
    /// A child entered the query's window. At the beginning it is delivered for each child that exists.
    case childAdded = 0
    /// A child left the window or was deleted. The snapshot has its last known data.
    case childRemoved = 1
    /// The data of a child changed, or its priority.
    case childChanged = 2
    /// The value by which a child is ordered changed, so that its position may differ. `childChanged` follows.
    case childMoved = 3
    /// The whole data of the query, at the beginning and after each change.
    case value = 4
}

extension DataEventType {
    var kinds: EngineEventKinds {
        switch self {
        case .childAdded: .childAdded
        case .childRemoved: .childRemoved
        case .childChanged: .childChanged
        case .childMoved: .childMoved
        case .value: .value
        }
    }
}

/// Identifies an observer; never 0, and never used twice in a process.
public typealias DatabaseHandle = UInt
