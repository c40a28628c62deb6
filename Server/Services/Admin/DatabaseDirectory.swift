import HearthModel
import HearthStorage

/// The databases of a server, as their administration sees them.
public protocol DatabaseDirectory: Sendable {
    /// The database with a name, made on first use.
    func database(_ name: DatabaseName) throws(Status) -> Database
    /// The names of all databases.
    func databases() throws(Status) -> [DatabaseName]
    /// Deletes a database with everything in it. Waits for its writer.
    func delete(_ name: DatabaseName) throws(Status)
}

extension DatabaseRegistry: DatabaseDirectory {}
