import Glibc
import HearthModel
import HearthSQLite

/// The paths of a client's cache: a SQLite database, its log beside it, and the lock of whoever uses it. No I/O but what
/// removes files or puts them aside.
package struct CacheFile: Hashable, Sendable {
    package let folder: String
    package let database: String
    package let lock: String

    /// - Parameters:
    ///   - name: the database's file in the folder, with its suffix.
    ///   - lockName: the lock's.
    package init(folder: String, name: String, lockName: String) {
        self.folder = folder
        database = folder + "/" + name
        lock = folder + "/" + lockName
    }

    package var log: String { database + "-wal" }
    /// SQLite removes it itself, but other builds of it may have left one.
    private var sharedMemory: String { database + "-shm" }
    private static let damagedMark = ".damaged-"

    /// A name made safe for a path, as those of the server's databases. No other component is one `%` alone.
    package static func component(_ name: String) -> String {
        name.isEmpty ? "%" : DatabaseFileName.component(name)
    }

    /// Removes the cache and what was put aside of it.
    /// - Throws: FAILED_PRECONDITION when it is in use.
    package func clear() throws(Status) {
        try DataFolder.makeFolder(folder)
        let held = try CacheLock(self)
        for path in [log, sharedMemory, database] { try DataFolder.remove(path) }
        let prefix = lastComponent + Self.damagedMark
        for name in try DataFolder.names(folder) where name.utf8.starts(with: prefix.utf8) {
            try DataFolder.remove(folder + "/" + name)
        }
        held.release(isClean: true)
    }

    private var lastComponent: String { String(database.utf8.dropFirst(folder.utf8.count + 1)) ?? "" }

    /// Renames a damaged cache, so that a new one can be made, and keeps it for a look at it or for experts.
    /// - Returns: the database's new path.
    func moveAside() throws(Status) -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let target = database + Self.damagedMark + String(now.tv_sec * 1000 + now.tv_nsec / 1_000_000)
        // First the log: a new database must never meet it. When the process ends between the two, the lock file still says
        // that the database is damaged, and it follows at the next opening.
        for (from, to) in [(log, target + "-wal"), (database, target)] {
            if rename(from, to) != 0, errno != ENOENT { throw DataFolder.failure("put \(from) aside as \(to)") }
        }
        try DataFolder.remove(sharedMemory)
        return target
    }
}
