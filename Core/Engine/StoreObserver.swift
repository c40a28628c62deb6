import HearthModel

/// An event of a store that operators of the server must know.
package enum StoreEvent: Sendable, Equatable {
    /// Commits have begun to fail.
    case commitsFail(Status)
    /// Commits are possible again.
    case commitsRecovered(failures: Int)
    /// What the log has can't be applied to the database's file; the log grows, and when it is too long, commits fail.
    case applicationsFail(Status)
    case applicationsRecovered(failures: Int)
    /// Writes wait because the file doesn't follow the log.
    case writesStall
    case writesFlow
    /// SQLite's write-ahead log can no longer be copied into the database's file; it grows.
    case checkpointsFail(Status)
    case checkpointsRecovered(failures: Int)
    /// Snapshots that kept too much of the write-ahead log alive were taken from their holders.
    case snapshotsRevoked(Int)
    /// The write-ahead log has grown past its usual size.
    case logIsLong(bytes: Int)
    /// The store cannot be opened: damage, a newer format, a failing disk.
    /// - file: its path, which clients are not shown.
    case openFails(Status, file: String)
    case opened
    /// A file was there, without any contents: a new database's after a crash, or one that was truncated.
    case foundEmpty(file: String)
    /// The store is closed: its earlier reports no longer hold.
    case closed
    /// The store is deleted, which may have been impossible to open.
    case deleted
}

/// Receives events of stores. Called on any thread, also on the writer's, so it must return quickly.
package protocol StoreObserver: AnyObject, Sendable {
    /// - Parameter name: the name of the database.
    func store(_ name: String, reports event: StoreEvent)
}
