import HearthCache
import HearthModel

/// The cache's file: `FOLDER/realtime.sqlite`, a SQLite 3 database with `application_id` "HRTD" and the version of its tables
/// in `user_version`. Strings are blobs of their UTF-8 bytes. `FOLDER/realtime.lock` is locked while an engine uses it: see
/// `CacheLock`.
final class DiskFile {
    let database: CacheDatabase
    let paths: CacheFile
    private let lock: CacheLock
    private var isClosed = false

    /// A damaged file is put aside and reported, and a new one begun.
    /// - Throws: FAILED_PRECONDITION when the folder is in use, or the file of a newer version.
    init(folder: String, report: (Status) -> Void) throws(Status) {
        let file = CacheFile(folder: folder, name: "realtime.sqlite", lockName: "realtime.lock")
        paths = file
        let lost = { (warning: String) in report(Status(.dataLoss, warning)) }
        (database, lock) = try CacheOpening(file: file, contents: RealtimeCache()).open(lost: lost) { reason, path in
            let message = "The cache \(file.database) is damaged and was put aside as \(path): \(reason.message)"
            report(Status(.dataLoss, message))
            return message
        }
    }

    deinit { close(isClean: false) }

    func close(isClean: Bool) {
        if isClosed { return }
        isClosed = true
        database.close()
        lock.release(isClean: isClean)
    }
}

/// The tables. Of the contents nothing is examined but SQLite's own structures, and the numbers that are counted on from: `Disk` goes on
/// without what else it cannot read.
private struct RealtimeCache: CacheContents {
    /// "HRTD"
    private static let applicationID = 0x4852_5444

    /// What was released is never edited: a change is a new step.
    private static let first = """
        CREATE TABLE leaves (
            space INTEGER NOT NULL, path BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (space, path)) WITHOUT ROWID;
        CREATE TABLE queries (
            id INTEGER PRIMARY KEY, path BLOB NOT NULL, query BLOB NOT NULL, is_complete INTEGER NOT NULL,
            last_use INTEGER NOT NULL, UNIQUE (path, query));
        CREATE TABLE writes (
            id INTEGER PRIMARY KEY, path BLOB NOT NULL, is_merge INTEGER NOT NULL, made_at INTEGER NOT NULL,
            data BLOB NOT NULL);
        """

    /// Rows with a number: in a table without one SQLite copies a large value whenever it compares the keys of its
    /// neighbours with it.
    private static let numberedLeaves = """
        ALTER TABLE leaves RENAME TO unnumbered_leaves;
        CREATE TABLE leaves (
            id INTEGER PRIMARY KEY, space INTEGER NOT NULL, path BLOB NOT NULL, value BLOB NOT NULL,
            UNIQUE (space, path));
        INSERT INTO leaves (space, path, value) SELECT space, path, value FROM unnumbered_leaves;
        DROP TABLE unnumbered_leaves;
        CREATE TABLE journal (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL);
        INSERT INTO journal (id, number) VALUES (1, 0);
        """

    var schema: CacheSchema {
        CacheSchema(
            applicationID: Self.applicationID,
            steps: [
                CacheSchema.Step(number: 1, string: Self.first),
                CacheSchema.Step(number: 2, string: Self.numberedLeaves),
            ])
    }
    var creation: String { "" }
    var configuration: String { "" }
    /// A file that was closed in order is believed.
    var checkedSizeBytesMax: Int { 0 }
    func readAll(_ database: CacheDatabase) throws(Status) {
        try DiskQueries.checkNumbers(in: database)
        let writes = DiskWrites(database: database)
        _ = try writes.lastID()
        _ = try writes.journalNumber()
    }

    func prepare(_ database: CacheDatabase) throws(Status) {}
}
