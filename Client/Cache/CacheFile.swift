import Glibc
import HearthModel
import HearthSQLite

/// The paths of a client's cache: a SQLite database, its log and the journal of writes beside it, and the lock of whoever
/// uses it. No I/O but what
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
    /// See `WriteJournal`.
    package var journal: String { Self.journal(of: database) }
    package static func journal(of database: String) -> String { database + ".writes" }
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
        for path in [journal, log, sharedMemory, database] { try DataFolder.remove(path) }
        let prefix = lastComponent + Self.damagedMark
        for name in try DataFolder.names(folder) where name.utf8.starts(with: prefix.utf8) {
            try DataFolder.remove(folder + "/" + name)
        }
        held.releaseCleared()
    }

    private var lastComponent: String { String(database.utf8.dropFirst(folder.utf8.count + 1)) ?? "" }

    /// Whether there is something of a cache, but no database: it was removed, or emptied.
    func isRest(wasUsed: Bool) -> Bool {
        if Self.sizeBytes(database) > 0 { return false }
        return wasUsed || Self.sizeBytes(log) > 0 || Self.sizeBytes(journal) > 0
    }

    private static func sizeBytes(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Renames a damaged cache, so that a new one can be made, and keeps it for a look at it or for experts.
    /// - Returns: the database's new path.
    func moveAside() throws(Status) -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let target = database + Self.damagedMark + String(now.tv_sec * 1000 + now.tv_nsec / 1_000_000)
        // First the log and the journal: a new database must never meet them. When the process ends in between, the lock file still says
        // that the database is damaged, and it follows at the next opening.
        for (from, to) in [(log, target + "-wal"), (journal, Self.journal(of: target)), (database, target)] {
            if rename(from, to) != 0, errno != ENOENT { throw DataFolder.failure("put \(from) aside as \(to)") }
        }
        try DataFolder.remove(sharedMemory)
        return target
    }
}
