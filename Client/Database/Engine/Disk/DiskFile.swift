import HearthModel
import HearthSQLite

import Glibc

/// The cache's file: `FOLDER/realtime.sqlite`, a SQLite 3 database with `application_id` "HRTD" and the version of its tables
/// in `user_version`. Texts are blobs of their UTF-8 bytes. `FOLDER/realtime.lock` is locked while an engine uses it, and
/// holds a line that is taken away when the use ends in order; after another end the database is examined.
final class DiskFile {
    let database: CacheDatabase
    private let lockDescriptor: Int32
    private var isClosed = false

    /// "HRTD"
    private static let applicationID = 0x4852_5444
    private static let version = 1

    /// What was released is never edited: a change is a new version.
    private static let tables = """
        CREATE TABLE leaves (
            space INTEGER NOT NULL, path BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (space, path)) WITHOUT ROWID;
        CREATE TABLE queries (
            id INTEGER PRIMARY KEY, path BLOB NOT NULL, query BLOB NOT NULL, is_complete INTEGER NOT NULL,
            last_use INTEGER NOT NULL, UNIQUE (path, query));
        CREATE TABLE writes (
            id INTEGER PRIMARY KEY, path BLOB NOT NULL, is_merge INTEGER NOT NULL, made_at INTEGER NOT NULL,
            data BLOB NOT NULL);
        """

    /// A damaged file is put aside and reported, and a new one begun.
    /// - Throws: FAILED_PRECONDITION when the folder is in use, or the file of a newer version.
    init(folder: String, report: (Status) -> Void) throws(Status) {
        try DataFolder.makeFolder(folder)
        let path = folder + "/realtime.sqlite"
        let (descriptor, isClean) = try Self.lock(folder + "/realtime.lock")
        do throws(Status) {
            do throws(Status) {
                database = try Self.open(path, isSuspect: !isClean)
            } catch {
                guard error.code == .dataLoss else { throw error }
                let aside = try Self.putAside(path)
                report(
                    Status(.dataLoss, "The cache \(path) is damaged and was put aside as \(aside): \(error.message)"))
                database = try Self.open(path, isSuspect: false)
            }
            try Self.mark(descriptor, "process \(getpid())\n")
        } catch {
            closeDescriptor(descriptor)
            throw error
        }
        lockDescriptor = descriptor
    }

    deinit { close(isClean: false) }

    func close(isClean: Bool) {
        if isClosed { return }
        isClosed = true
        database.close()
        if isClean { _ = ftruncate(lockDescriptor, 0) }
        closeDescriptor(lockDescriptor)
    }

    // MARK: The lock

    private static func lock(_ path: String) throws(Status) -> (descriptor: Int32, isClean: Bool) {
        let descriptor = openDescriptor(path)
        if descriptor < 0 { throw DataFolder.failure("open \(path)") }
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            closeDescriptor(descriptor)
            if code == EWOULDBLOCK {
                throw .failedPrecondition(
                    "The cache beside \(path) is in use by another client. One at a time can use it: end that client, or "
                        + "give this one another app name.")
            }
            throw DataFolder.failure("lock \(path)", code)
        }
        return (descriptor, lseek(descriptor, 0, SEEK_END) == 0)
    }

    private static func mark(_ descriptor: Int32, _ string: String) throws(Status) {
        let bytes = Array(string.utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else {
            throw DataFolder.failure("write the cache's lock")
        }
    }

    // MARK: The database

    private static func open(_ path: String, isSuspect: Bool) throws(Status) -> CacheDatabase {
        let database = try CacheDatabase(path: path)
        do throws(Status) {
            let found = try database.number("PRAGMA user_version")
            if found > version {
                throw .failedPrecondition(
                    "The cache \(path) was made by a newer version (\(found)) of this library, which knows \(version).")
            }
            if isSuspect {
                let answers = try database.strings("PRAGMA quick_check(3)")
                if answers != ["ok"] { throw database.damaged(answers.joined(separator: "; ")) }
            }
            try database.execute(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY")
            if found == 0 {
                try database.execute(
                    "BEGIN; \(tables) PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version); COMMIT"
                )
            }
        } catch {
            database.close()
            throw error
        }
        return database
    }

    private static func putAside(_ path: String) throws(Status) -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let aside = path + ".damaged-" + String(now.tv_sec * 1000 + now.tv_nsec / 1_000_000)
        // The log first: a new database must never meet it.
        for suffix in ["-wal", ""] where rename(path + suffix, aside + suffix) != 0 && errno != ENOENT {
            throw DataFolder.failure("put \(path) aside")
        }
        try DataFolder.remove(path + "-shm")
        return aside
    }
}

// `open` and `close`, which methods hide.

private func openDescriptor(_ path: String) -> Int32 { open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }

private func closeDescriptor(_ descriptor: Int32) { close(descriptor) }
