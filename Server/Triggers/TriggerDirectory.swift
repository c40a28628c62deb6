import HearthDocuments
import HearthModel

/// The databases of a server, for its triggers.
package struct TriggerDirectory: Sendable {
    /// The names of all that exist. May wait for the disk.
    let names: @Sendable () throws(Status) -> [DatabaseName]
    /// May wait for the disk.
    let exists: @Sendable (_ name: DatabaseName) throws(Status) -> Bool
    /// Opens one that may be closed.
    let open:
        @Sendable (_ name: DatabaseName, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void) -> Void

    package init(
        names: @escaping @Sendable () throws(Status) -> [DatabaseName],
        exists: @escaping @Sendable (_ name: DatabaseName) throws(Status) -> Bool,
        open:
            @escaping @Sendable (
                _ name: DatabaseName, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void
            ) -> Void
    ) {
        self.names = names
        self.exists = exists
        self.open = open
    }
}
