/// A change of one child of a query's result: an element of `DatabaseQuery.childEvents()`.
///
/// The name and the cases are those of the asynchronous sequences that Firebase proposes for Apple platforms:
/// https://github.com/firebase/firebase-ios-sdk/pull/15596.
public enum DatabaseEvent: Sendable {
    /// A child entered the query's window, or was in it at the beginning. The key is that of the previous sibling in
    /// the order of the query; nil for the first child.
    case childAdded(DataSnapshot, previousSiblingKey: String?)
    /// The data of a child changed. The key is that of the previous sibling; nil for the first child.
    case childChanged(DataSnapshot, previousSiblingKey: String?)
    /// A child left the query's window. The snapshot has its last known data.
    case childRemoved(DataSnapshot)
    /// The value by which a child is ordered changed, so that its position may differ. The key is that of the new
    /// previous sibling; nil for the first child.
    case childMoved(DataSnapshot, previousSiblingKey: String?)

    /// The type that `observe` has for this event; never `value`.
    public var type: DataEventType {
        switch self {
        case .childAdded: .childAdded
        case .childChanged: .childChanged
        case .childRemoved: .childRemoved
        case .childMoved: .childMoved
        }
    }

    /// The data of the child.
    public var snapshot: DataSnapshot {
        switch self {
        case .childAdded(let snapshot, _), .childChanged(let snapshot, _), .childRemoved(let snapshot),
            .childMoved(let snapshot, _):
            snapshot
        }
    }

    /// The key of the previous sibling after the change; nil for the first child and for a removed child.
    public var previousSiblingKey: String? {
        switch self {
        case .childAdded(_, let key), .childChanged(_, let key), .childMoved(_, let key): key
        case .childRemoved: nil
        }
    }
}
