import Foundation
import HearthApp
import HearthModel
import HearthTree

/// A place in a database: what is read, written and observed.
public class DatabaseReference: DatabaseQuery, @unchecked Sendable {
    init(database: Database, path: TreePath) { super.init(database: database, path: path) }

    /// Of no use: a reference of no database.
    public override init() { super.init() }

    /// - Parameter pathString: a key, or several joined by `/`.
    public func child(_ pathString: String) -> DatabaseReference {
        let (database, path) = base
        return orTrap { () throws(Status) in
            DatabaseReference(
                database: database, path: try Paths.path(pathString, below: path, "child(_:)"))
        }
    }

    /// A new child, whose key stands behind those that were made before. Nothing is written by it.
    public func childByAutoId() -> DatabaseReference {
        let (database, path) = base
        let child = path.child(database.repository.pushID())
        return orTrap { () throws(Status) in
            try Paths.check(child, "childByAutoId()")
            return DatabaseReference(database: database, path: child)
        }
    }

    /// nil at the root.
    public var parent: DatabaseReference? {
        let (database, path) = base
        return path.parent.map { DatabaseReference(database: database, path: $0) }
    }

    public var root: DatabaseReference { DatabaseReference(database: database, path: .root) }

    /// nil at the root.
    public var key: String? { base.path.last?.string }

    /// Percent-encoded.
    public var url: String { repository.configuration.location.url(of: base.path) }

    public var database: Database { base.database }

    /// The same as `url`.
    public func description() -> String { url }

    /// Ends the connections of all databases that are in use, until `goOnline`.
    public class func goOffline() {
        for repository in Database.allInUse() { repository.perform { $0.goOffline(reason: Database.userReason) } }
    }

    public class func goOnline() {
        for repository in Database.allInUse() { repository.perform { $0.goOnline(reason: Database.userReason) } }
    }
}
