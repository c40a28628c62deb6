import Foundation
import HearthApp
import HearthModel
import HearthTree

/// A location in a database, for reading, writing and observing. Nothing has to be stored at the location.
public class DatabaseReference: DatabaseQuery, @unchecked Sendable {
    init(database: Database, path: TreePath) { super.init(database: database, path: path) }

    /// Creates a reference without a database. Any use of it ends the program.
    public override init() { super.init() }

    /// A reference to a location below this one.
    /// - Parameter pathString: a key, or several joined by `/`. The whole path has at most 32 keys and 768 bytes; keys
    ///   are those of `Database.reference(withPath:)`. Any other path ends the program.
    /// - Returns: a reference to the location, which may have no data.
    public func child(_ pathString: String) -> DatabaseReference {
        let (database, path) = base
        return orTrap { () throws(Status) in
            DatabaseReference(
                database: database, path: try Paths.path(pathString, below: path, "child(_:)"))
        }
    }

    /// A reference to a new child with a key of 20 characters, which sorts after the keys that the program made before.
    /// It writes nothing and works offline.
    ///
    /// Keys begin with the time, by the client's estimate of the server's clock, so those of several programs sort by
    /// their times. Random characters follow.
    /// - Returns: a reference to the child, which has no data yet.
    public func childByAutoId() -> DatabaseReference {
        let (database, path) = base
        let child = path.child(database.repository.pushID())
        return orTrap { () throws(Status) in
            try Paths.check(child, "childByAutoId()")
            return DatabaseReference(database: database, path: child)
        }
    }

    /// The location above; nil at the root.
    public var parent: DatabaseReference? {
        let (database, path) = base
        return path.parent.map { DatabaseReference(database: database, path: $0) }
    }

    /// The root of the database.
    public var root: DatabaseReference { DatabaseReference(database: database, path: .root) }

    /// The last key of the path; nil at the root.
    public var key: String? { base.path.last?.string }

    /// The URL of the location, with percent-encoded keys and without the `ns` parameter.
    public var url: String { repository.configuration.location.url(of: base.path) }

    /// The database that the location belongs to.
    public var database: Database { base.database }

    /// The same as `url`.
    /// - Returns: the URL of the location.
    public func description() -> String { url }

    /// Calls `Database.goOffline()` of all databases that are in use, of all apps.
    public class func goOffline() {
        for repository in Database.allInUse() { repository.perform { $0.goOffline(reason: Database.userReason) } }
    }

    /// Calls `Database.goOnline()` of all databases that are in use, of all apps.
    public class func goOnline() {
        for repository in Database.allInUse() { repository.perform { $0.goOnline(reason: Database.userReason) } }
    }
}
