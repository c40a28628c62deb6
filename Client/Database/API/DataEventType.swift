/// The kinds of events that an observer of a query receives.
public enum DataEventType: Int, Sendable {
    /// A child entered the query's window. Also raised for each child that exists at the beginning.
    case childAdded = 0
    /// A child left the window.
    case childRemoved = 1
    /// The data of a child changed.
    case childChanged = 2
    /// The value by which a child is ordered changed, so that its position may differ.
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
