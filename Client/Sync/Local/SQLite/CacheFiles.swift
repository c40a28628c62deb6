import HearthModel
import HearthSQLite

import Glibc

/// Where a client's cache lies: `FOLDER/APP/PROJECT/DATABASE.sqlite`, with SQLite's log `….sqlite-wal` and the lock
/// `….sqlite.lock` beside it. Names are made safe as those of the server's databases, whatever is in them.
struct CacheFiles: Hashable, Sendable {
    var appName: String
    var databaseName: DatabaseName
    /// The folder of this cache.
    let folder: String
    let database: String

    init(folder: String, appName: String, database databaseName: DatabaseName) {
        self.appName = appName
        self.databaseName = databaseName
        self.folder = [folder, Self.component(appName), Self.component(databaseName.project)].joined(separator: "/")
        database = self.folder + "/" + Self.component(databaseName.database) + ".sqlite"
    }

    var log: String { database + "-wal" }
    var lock: String { database + ".lock" }
    /// SQLite removes it itself, but other builds of it may have left one.
    private var sharedMemory: String { database + "-shm" }
    private static let damagedMark = ".damaged-"

    /// No other component is one `%` alone.
    private static func component(_ name: String) -> String {
        name.isEmpty ? "%" : DatabaseFileName.component(name)
    }

    /// Removes the cache and what was put aside of it.
    /// - Throws: FAILED_PRECONDITION when it is in use.
    func clear() throws(Status) {
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

    /// Puts a damaged cache where it is in nobody's way, for a look at it or for experts.
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

/// The right to use a cache: `flock` on its lock file, which the system drops when the process ends, however it ends.
///
/// While a cache is in use the file holds a line about it; the line is taken away at the end. One that is found tells that
/// the last use didn't end in order, so that the database is examined.
final class CacheLock {
    private var descriptor: Int32
    /// Whether the last use ended in order, or there was none.
    let wasClean: Bool

    /// - Throws: FAILED_PRECONDITION when the cache is in use, by this process or another.
    init(_ files: CacheFiles) throws(Status) {
        while true {
            let descriptor = open(files.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            if descriptor < 0 { throw DataFolder.failure("open \(files.lock)") }
            if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
                let code = errno
                let holder = Self.contents(descriptor)
                close(descriptor)
                if code == EWOULDBLOCK { throw Self.inUse(files, holder) }
                throw DataFolder.failure("lock \(files.lock)", code)
            }
            // The file may have been replaced between the two calls.
            var mine = stat()
            var present = stat()
            if fstat(descriptor, &mine) == 0, stat(files.lock, &present) == 0, mine.st_ino == present.st_ino {
                self.descriptor = descriptor
                wasClean = Self.contents(descriptor).isEmpty
                return
            }
            close(descriptor)
        }
    }

    private static func inUse(_ files: CacheFiles, _ holder: String) -> Status {
        let words = holder.isEmpty ? "" : " (\(holder.split(separator: "\n").first ?? ""))"
        return .failedPrecondition(
            "The cache \(files.database) is in use by another client\(words). One process at a time can use it: end that "
                + "client, or give this one another folder or app name.")
    }

    func markInUse() throws(Status) { try write("process \(getpid())\n") }
    /// The next opening examines the database thoroughly.
    func markDamaged() { try? write("damaged\n") }
    var isMarkedDamaged: Bool { Self.contents(descriptor).utf8.starts(with: "damaged".utf8) }

    /// - Parameter isClean: whether nothing is to be examined at the next opening.
    func release(isClean: Bool) {
        guard descriptor >= 0 else { return }
        if isClean { _ = ftruncate(descriptor, 0) }
        close(descriptor)
        descriptor = -1
    }

    deinit { release(isClean: false) }

    private func write(_ string: String) throws(Status) {
        let bytes = Array(string.utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else {
            let code = errno
            var status = DataFolder.failure("write the cache's lock", code)
            if code == ENOSPC || code == EDQUOT { status.code = .resourceExhausted }
            throw status
        }
    }

    private static func contents(_ descriptor: Int32) -> String {
        let bytes = [UInt8](unsafeUninitializedCapacity: 256) { buffer, count in
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
