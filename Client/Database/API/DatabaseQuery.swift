public import Foundation
import HearthApp
import HearthModel
import HearthTree

/// Data at a location, optionally ordered and filtered. A query never changes: each call returns another query.
public class DatabaseQuery: NSObject, @unchecked Sendable {
    // All state is constant.
    let location: (database: Database, path: TreePath)?
    let spec: QuerySpec

    init(database: Database, path: TreePath, spec: QuerySpec = QuerySpec()) {
        location = (database, path)
        self.spec = spec
        super.init()
        // Creating a reference is the first use of a database: from now on it cannot be configured.
        _ = database.repository
    }

    /// Creates a query without a database. It has no use.
    public override init() {
        location = nil
        spec = QuerySpec()
    }

    /// A reference to the query's location, without order and filter.
    public var ref: DatabaseReference { DatabaseReference(database: base.database, path: base.path) }

    var base: (database: Database, path: TreePath) {
        orTrap { () throws(Status) in
            guard let location else {
                throw .failedPrecondition("A query or reference that was made by init() can't be used.")
            }
            return location
        }
    }

    /// The URL of the location; empty for an object that was made by `init()`.
    public override var description: String {
        location.map { $0.database.repository.configuration.location.url(of: $0.path) } ?? ""
    }

    var repository: Repository { base.database.repository }

    /// Another query of the same location.
    private func with(_ change: (QuerySpec) throws(Status) -> QuerySpec) -> DatabaseQuery {
        let (database, path) = base
        return orTrap { () throws(Status) in
            DatabaseQuery(database: database, path: path, spec: try change(spec))
        }
    }

    // MARK: Order and limits

    /// Orders by the value at a path inside each child.
    public func queryOrdered(byChild path: String) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(byChild: path) }
    }

    public func queryOrderedByKey() -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(by: .key, "queryOrderedByKey()") }
    }

    public func queryOrderedByValue() -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(by: .value, "queryOrderedByValue()") }
    }

    public func queryOrderedByPriority() -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(by: .priority, "queryOrderedByPriority()") }
    }

    public func queryLimited(toFirst limit: UInt) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.limited(.first, to: limit) }
    }

    public func queryLimited(toLast limit: UInt) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.limited(.last, to: limit) }
    }

    // MARK: Bounds

    private func bounded(_ kind: QuerySpec.BoundKind, _ value: Any?, _ childKey: String? = nil) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.bounded(kind, value, childKey: childKey) }
    }

    /// The bound is inclusive.
    public func queryStarting(atValue value: Any?) -> DatabaseQuery { bounded(.startingAt, value) }

    public func queryStarting(atValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.startingAt, value, childKey)
    }

    /// The bound is exclusive.
    public func queryStarting(afterValue value: Any?) -> DatabaseQuery { bounded(.startingAfter, value) }

    public func queryStarting(afterValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.startingAfter, value, childKey)
    }

    /// The bound is inclusive.
    public func queryEnding(atValue value: Any?) -> DatabaseQuery { bounded(.endingAt, value) }

    public func queryEnding(atValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.endingAt, value, childKey)
    }

    /// The bound is exclusive.
    public func queryEnding(beforeValue value: Any?) -> DatabaseQuery { bounded(.endingBefore, value) }

    public func queryEnding(beforeValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.endingBefore, value, childKey)
    }

    public func queryEqual(toValue value: Any?) -> DatabaseQuery { bounded(.equal, value) }

    public func queryEqual(toValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.equal, value, childKey)
    }
}
