import HearthDocuments
import HearthModel

/// The databases and namespaces of a server, for its triggers.
package struct TriggerDirectory: Sendable {
    /// The names of all that exist. May wait for the disk.
    let names: @Sendable () throws(Status) -> [DatabaseName]
    /// May wait for the disk.
    let exists: @Sendable (_ name: DatabaseName) throws(Status) -> Bool
    /// Opens one that may be closed.
    let open:
        @Sendable (_ name: DatabaseName, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void) -> Void

    /// The namespaces of the Realtime Database that exist. May wait for the disk.
    let namespaces: @Sendable () throws(Status) -> [String]
    /// Opens one, and waits for it.
    let openNamespace: @Sendable (_ name: String) throws(Status) -> Void

    package init(
        names: @escaping @Sendable () throws(Status) -> [DatabaseName],
        exists: @escaping @Sendable (_ name: DatabaseName) throws(Status) -> Bool,
        open:
            @escaping @Sendable (
                _ name: DatabaseName, _ completion: @escaping @Sendable (Result<Database, Status>) -> Void
            ) -> Void,
        namespaces: @escaping @Sendable () throws(Status) -> [String] = { () throws(Status) in [] },
        openNamespace: @escaping @Sendable (_ name: String) throws(Status) -> Void = { (_) throws(Status) in }
    ) {
        self.namespaces = namespaces
        self.openNamespace = openNamespace
        self.names = names
        self.exists = exists
        self.open = open
    }
}
