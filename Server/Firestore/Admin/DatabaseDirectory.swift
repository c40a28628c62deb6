import HearthModel
import HearthDocuments

/// The databases of a server, for their administration.
package protocol DatabaseDirectory: Sendable {
    /// The database with a name; a missing one is empty, and the first write creates it. Waits until it is open.
    func database(_ name: DatabaseName) throws(Status) -> Database
    /// Whether a database exists; does not create it. May wait for the disk.
    func exists(_ name: DatabaseName) throws(Status) -> Bool
    /// The names of all databases. May wait for the disk.
    func databases() throws(Status) -> [DatabaseName]
    /// Deletes a database with all its data. Waits for the end of the deletion.
    func delete(_ name: DatabaseName) throws(Status)
}

extension DatabaseRegistry: DatabaseDirectory {}
