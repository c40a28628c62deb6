import HearthModel
import HearthSQLite

/// What a client keeps in its cache's file: the tables, and what to do with the database besides.
package protocol CacheContents {
    var schema: CacheSchema { get }
    /// For a new file, before there is a table or WAL mode: what cannot be changed afterwards. May be empty.
    var creation: String { get }
    /// At each opening. May be empty.
    var configuration: String { get }
    /// Up to this size a file is examined although its last use ended in order.
    var checkedSizeBytesMax: Int { get }
    /// Reads all rows, when damage showed in use: a row that cannot be read would make every later use of it fail.
    func readAll(_ database: CacheDatabase) throws(Status)
    /// The last step of opening, with all tables there.
    func prepare(_ database: CacheDatabase) throws(Status)
}

/// Opens a client's cache file: takes the lock, examines what may be damaged, makes or migrates the tables.
///
/// The whole file is examined (`quick_check`) when its last use did not end in order, and up to the contents'
/// `checkedSizeBytesMax` always; a larger one that was closed in order is believed. What is damaged nevertheless shows in
/// use as DATA_LOSS, is noted in the lock file, and leads to a thorough examination of pages and contents at the next
/// opening. When that finds nothing, and the damage shows again, the file is damaged in a way that no examination knows: the
/// opening after it believes what the use has shown, or no program could ever use the cache. A damaged file is put aside,
/// never deleted, and a new one is made.
package struct CacheOpening<Contents: CacheContents> {
    private let file: CacheFile
    private let contents: Contents

    package init(file: CacheFile, contents: Contents) {
        self.file = file
        self.contents = contents
    }

    /// - Parameters:
    ///   - lost: called with a warning when there was a database, and there is none.
    ///   - describe: called when a damaged file was put aside, with what was wrong and where the file is now; gives a
    ///     sentence about it, for the error when no new cache can be made.
    /// - Throws: FAILED_PRECONDITION when the cache is in use, of a newer version, or no cache of this client.
    package func open(
        lost: (String) -> Void, putAside describe: (_ reason: Status, _ path: String) -> String
    ) throws(Status) -> (database: CacheDatabase, lock: CacheLock) {
        try DataFolder.makeFolder(file.folder)
        let lock = try CacheLock(file)
        let isSuspect = !lock.wasClean
        let isMarkedDamaged = lock.isMarkedDamaged
        var isExamined = isMarkedDamaged
        let isRest = file.isRest(wasUsed: lock.wasUsed)
        let opened: CacheDatabase
        do throws(Status) {
            opened = try open(
                isSuspect: isSuspect, isMarkedDamaged: isMarkedDamaged, isKnownDamaged: lock.isMarkedPutAside)
        } catch {
            guard error.code == .dataLoss else {
                lock.release(isClean: false)
                throw error
            }
            isExamined = false
            lock.markPutAside()
            let damage = describe(error, try file.moveAside())
            do throws(Status) {
                opened = try open(isSuspect: false, isMarkedDamaged: false, isKnownDamaged: false)
            } catch {
                // What was put aside must not go unmentioned.
                throw Status(error.code, error.message + " " + damage)
            }
        }
        if isRest {
            lost(
                "The cache \(file.database) was removed or emptied while no client used it; a new one was created. Writes "
                    + "in it that never reached the server are lost.")
        }
        try lock.markInUse(isExamined: isExamined)
        opened.onDamage = { [weak lock] in lock?.markDamaged() }
        return (opened, lock)
    }

    private func open(
        isSuspect: Bool, isMarkedDamaged: Bool, isKnownDamaged: Bool
    ) throws(Status) -> CacheDatabase {
        let database = try CacheDatabase(path: file.database)
        do throws(Status) {
            let version = try contents.schema.version(of: database)
            if version == 0 {
                // A journal belongs to the database of which it has the next writes.
                try DataFolder.remove(file.journal)
                try database.execute(contents.creation)
            } else {
                if isKnownDamaged {
                    throw database.damaged("\(file.database) showed damage, also after an examination.")
                }
                try examine(database, isSuspect: isSuspect, isMarkedDamaged: isMarkedDamaged)
            }
            try database.execute(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; "
                    + contents.configuration)
            try contents.schema.migrate(database, from: version)
            try contents.prepare(database)
        } catch {
            database.close()
            throw error
        }
        return database
    }

    private func examine(_ database: CacheDatabase, isSuspect: Bool, isMarkedDamaged: Bool) throws(Status) {
        let sizeBytes = try database.number("PRAGMA page_count") * database.number("PRAGMA page_size")
        guard isSuspect || sizeBytes <= contents.checkedSizeBytesMax else { return }
        // The thorough one compares indexes with their tables as well.
        let string = isMarkedDamaged ? "PRAGMA integrity_check(3)" : "PRAGMA quick_check(3)"
        let answers = try database.strings(string)
        if answers != ["ok"] {
            throw database.damaged("\(file.database) is damaged: " + answers.joined(separator: "; "))
        }
        if isMarkedDamaged { try contents.readAll(database) }
    }
}
