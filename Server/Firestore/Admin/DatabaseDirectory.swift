import HearthModel
import HearthDocuments

/// The databases of a server, as their administration sees them.
package protocol DatabaseDirectory: Sendable {
    /// The database with a name; one that doesn't exist is empty, and made by the first write. Waits until it is open.
    func database(_ name: DatabaseName) throws(Status) -> Database
    /// Whether a database exists; asking doesn't make it. May wait for the disk.
    func exists(_ name: DatabaseName) throws(Status) -> Bool
    /// The names of all databases. May wait for the disk.
    func databases() throws(Status) -> [DatabaseName]
    /// Deletes a database with everything in it. Waits until that is done.
    func delete(_ name: DatabaseName) throws(Status)
}

extension DatabaseRegistry: DatabaseDirectory {}
