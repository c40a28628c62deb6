import Foundation
import HearthApp
import HearthModel
import HearthTree

/// A location in a database, for reading, writing and observing.
public class DatabaseReference: DatabaseQuery, @unchecked Sendable {
    init(database: Database, path: TreePath) { super.init(database: database, path: path) }

    /// Creates a reference without a database. It has no use.
    public override init() { super.init() }

    /// - Parameter pathString: a key, or several joined by `/`.
    public func child(_ pathString: String) -> DatabaseReference {
        let (database, path) = base
        return orTrap { () throws(Status) in
            DatabaseReference(
                database: database, path: try Paths.path(pathString, below: path, "child(_:)"))
        }
    }

    /// Creates a reference to a new child, whose key sorts after the keys made before. It writes nothing.
    public func childByAutoId() -> DatabaseReference {
        let (database, path) = base
        let child = path.child(database.repository.pushID())
        return orTrap { () throws(Status) in
            try Paths.check(child, "childByAutoId()")
            return DatabaseReference(database: database, path: child)
        }
    }

    /// The last key of the path; nil at the root.
    public var parent: DatabaseReference? {
        let (database, path) = base
        return path.parent.map { DatabaseReference(database: database, path: $0) }
    }

    public var root: DatabaseReference { DatabaseReference(database: database, path: .root) }

    /// The parent location; nil at the root.
    public var key: String? { base.path.last?.string }

    /// The location's URL, percent-encoded.
    public var url: String { repository.configuration.location.url(of: base.path) }

    public var database: Database { base.database }

    /// The same as `url`.
    public func description() -> String { url }

    /// Closes the connections of all databases that are in use, until `goOnline`.
    public class func goOffline() {
        for repository in Database.allInUse() { repository.perform { $0.goOffline(reason: Database.userReason) } }
    }

    public class func goOnline() {
        for repository in Database.allInUse() { repository.perform { $0.goOnline(reason: Database.userReason) } }
    }
}
