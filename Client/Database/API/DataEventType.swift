/// What an observer of a query is told of.
public enum DataEventType: Int, Sendable {
    /// A child came into the query's window; also each that is there at the beginning.
    case childAdded = 0
    /// A child left the window.
    case childRemoved = 1
    /// Something in a child is different.
    case childChanged = 2
    /// A child's value on the query's index is different, so that its place may be.
    case childMoved = 3
    /// The whole of the query's data, at the beginning and after each change.
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

/// Names an observer; never 0, and never used twice in a process.
public typealias DatabaseHandle = UInt
