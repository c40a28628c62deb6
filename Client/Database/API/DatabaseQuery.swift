public import Foundation
import HearthApp
import HearthModel
import HearthTree

/// Data at a location, optionally ordered and filtered. A query never changes: each call returns another query.
///
/// A query has at most one order, one limit, one start and one end; a second one ends the program. Without an order
/// children are ordered by priority, then by key; a bound must then fit an order by priority, even if another order
/// follows.
///
/// The server needs `".indexOn"` in the rules for an order by a child or by value. Without it, an observer causes a
/// warning on standard error, and `getData` fails.
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

    /// Creates a query without a database. Any use of it ends the program.
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

    /// Orders the children by the value at a path inside each of them: no value first, then false, true, numbers,
    /// strings, and dictionaries last; children with the same value by key.
    /// - Parameter path: a key, or several joined by `/`, relative to each child; not empty. Its keys and its length
    ///   are those of `Database.reference(withPath:)`. `.key`, `.value` and `.priority` end the program, as other
    ///   invalid paths do.
    /// - Returns: a query with the order.
    public func queryOrdered(byChild path: String) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(byChild: path) }
    }

    /// Orders the children by key: keys that are 32-bit integers first, by number, then the others by their UTF-16 code
    /// units.
    /// - Returns: a query with the order. Its bounds must be strings.
    public func queryOrderedByKey() -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(by: .key, "queryOrderedByKey()") }
    }

    /// Orders the children by their values, as `queryOrdered(byChild:)` orders by a value inside of them.
    /// - Returns: a query with the order.
    public func queryOrderedByValue() -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(by: .value, "queryOrderedByValue()") }
    }

    /// Orders the children by priority: none first, then numbers, then strings; children with the same priority by key.
    /// - Returns: a query with the order. Its bounds must not be Booleans.
    public func queryOrderedByPriority() -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.ordered(by: .priority, "queryOrderedByPriority()") }
    }

    /// Limits the query to the first children in its order.
    /// - Parameter limit: the largest number of children, from 1 to 2,147,483,647. Any other value ends the program.
    /// - Returns: a query with the limit.
    public func queryLimited(toFirst limit: UInt) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.limited(.first, to: limit) }
    }

    /// Limits the query to the last children in its order.
    /// - Parameter limit: the largest number of children, from 1 to 2,147,483,647. Any other value ends the program.
    /// - Returns: a query with the limit.
    public func queryLimited(toLast limit: UInt) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.limited(.last, to: limit) }
    }

    // MARK: Bounds

    private func bounded(_ kind: QuerySpec.BoundKind, _ value: Any?, _ childKey: String? = nil) -> DatabaseQuery {
        with { (spec) throws(Status) in try spec.bounded(kind, value, childKey: childKey) }
    }

    /// Limits the query to children at or after a value.
    /// - Parameter value: nil, a string, a number or a Boolean; with an order by key a string, with an order by
    ///   priority no Boolean. Anything else ends the program. nil is the value of children without one.
    /// - Returns: a query with the start.
    public func queryStarting(atValue value: Any?) -> DatabaseQuery { bounded(.startingAt, value) }

    /// Limits the query to children at or after a value; of the children with this value, to those with this key or a
    /// later one.
    /// - Parameters:
    ///   - value: nil, a string, a number or a Boolean; with an order by key a string, with an order by priority no
    ///     Boolean. Anything else ends the program. nil is the value of children without one.
    ///   - childKey: the key of a child; nil for none. With an order by key only nil is possible: the value is the key
    ///     then. Anything else ends the program.
    /// - Returns: a query with the start.
    public func queryStarting(atValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.startingAt, value, childKey)
    }

    /// Limits the query to children after a value, without those that have it.
    /// - Parameter value: nil, a string, a number or a Boolean; with an order by key a string, with an order by
    ///   priority no Boolean. Anything else ends the program. nil is the value of children without one.
    /// - Returns: a query with the start.
    public func queryStarting(afterValue value: Any?) -> DatabaseQuery { bounded(.startingAfter, value) }

    /// Limits the query to children after a value; of the children with this value, to those with a later key.
    /// - Parameters:
    ///   - value: nil, a string, a number or a Boolean; with an order by key a string, with an order by priority no
    ///     Boolean. Anything else ends the program. nil is the value of children without one.
    ///   - childKey: the key of a child; nil for none. With an order by key only nil is possible: the value is the key
    ///     then. Anything else ends the program.
    /// - Returns: a query with the start.
    public func queryStarting(afterValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.startingAfter, value, childKey)
    }

    /// Limits the query to children at or before a value.
    /// - Parameter value: nil, a string, a number or a Boolean; with an order by key a string, with an order by
    ///   priority no Boolean. Anything else ends the program. nil is the value of children without one.
    /// - Returns: a query with the end.
    public func queryEnding(atValue value: Any?) -> DatabaseQuery { bounded(.endingAt, value) }

    /// Limits the query to children at or before a value; of the children with this value, to those with this key or an
    /// earlier one.
    /// - Parameters:
    ///   - value: nil, a string, a number or a Boolean; with an order by key a string, with an order by priority no
    ///     Boolean. Anything else ends the program. nil is the value of children without one.
    ///   - childKey: the key of a child; nil for none. With an order by key only nil is possible: the value is the key
    ///     then. Anything else ends the program.
    /// - Returns: a query with the end.
    public func queryEnding(atValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.endingAt, value, childKey)
    }

    /// Limits the query to children before a value, without those that have it.
    /// - Parameter value: nil, a string, a number or a Boolean; with an order by key a string, with an order by
    ///   priority no Boolean. Anything else ends the program. nil is the value of children without one.
    /// - Returns: a query with the end.
    public func queryEnding(beforeValue value: Any?) -> DatabaseQuery { bounded(.endingBefore, value) }

    /// Limits the query to children before a value; of the children with this value, to those with an earlier key.
    /// - Parameters:
    ///   - value: nil, a string, a number or a Boolean; with an order by key a string, with an order by priority no
    ///     Boolean. Anything else ends the program. nil is the value of children without one.
    ///   - childKey: the key of a child; nil for none. With an order by key only nil is possible: the value is the key
    ///     then. Anything else ends the program.
    /// - Returns: a query with the end.
    public func queryEnding(beforeValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.endingBefore, value, childKey)
    }

    /// Limits the query to children with a value. It sets the start and the end.
    /// - Parameter value: nil, a string, a number or a Boolean; with an order by key a string, with an order by
    ///   priority no Boolean. Anything else ends the program. nil is the value of children without one.
    /// - Returns: a query with both bounds.
    public func queryEqual(toValue value: Any?) -> DatabaseQuery { bounded(.equal, value) }

    /// Limits the query to the child with a value and a key. It sets the start and the end.
    /// - Parameters:
    ///   - value: nil, a string, a number or a Boolean; with an order by key a string, with an order by priority no
    ///     Boolean. Anything else ends the program. nil is the value of children without one.
    ///   - childKey: the key of the child; nil for none. With an order by key only nil is possible: the value is the
    ///     key then. Anything else ends the program.
    /// - Returns: a query with both bounds.
    public func queryEqual(toValue value: Any?, childKey: String?) -> DatabaseQuery {
        bounded(.equal, value, childKey)
    }
}
