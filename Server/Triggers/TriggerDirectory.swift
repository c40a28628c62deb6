import HearthDocuments
import HearthModel

/// The databases of a server, for its triggers.
package struct TriggerDirectory: Sendable {
    /// The names of all that exist. May wait for the disk.
    let names: @Sendable () throws(Status) -> [DatabaseName]
    /// Opens one that may be closed.
    let open:
        @Sendable (_ name: DatabaseName, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void) -> Void

    package init(
        names: @escaping @Sendable () throws(Status) -> [DatabaseName],
        open:
            @escaping @Sendable (
                _ name: DatabaseName, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void
            ) -> Void
    ) {
        self.names = names
        self.open = open
    }
}
