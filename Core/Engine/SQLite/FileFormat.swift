import HearthModel

/// The database file.
///
/// A SQLite 3 database in WAL mode with `application_id` "HRTH" and the format's version in `user_version`.
///
/// Version 1: one table a keyspace, named `documents`, `entries`, `feed` and `meta`, each with the columns
///
///     key    BLOB    unique; ordered by bytes (memcmp, the shorter first), which is SQLite's order of blobs
///     value  BLOB    may be empty
///
/// Version 2: the same, and beside the file may be a log with later changes (`LoggedStore`), whose position is a record of
/// `meta`. A hearth that knows only version 1 would miss them.
///
/// Version 3: the same. `meta` may have counts and pieces of large records of triggers, which a hearth that knows only version
/// 2 would not keep right.
///
/// Version 4: the same. The log's position has flags (`LogPosition`), one of which is whether there is a log: a hearth that knows
/// only version 3 would not keep it right.
///
/// This module does not interpret keys and values. `documents` is a rowid table with a unique index on `key`, the
/// others are WITHOUT ROWID, that is, the row is in the key's B-tree. Measured with documents of 35-byte random names,
/// 4 KiB pages, per second or in microseconds, rowid : WITHOUT ROWID:
///
///     500 B, 500,000 of them   insert 42,000 : 20,000   read 5.8 : 5.8   walk over 100 rows 280 : 50   update alike
///     2,000 B, 60,000          insert 26,000 : 15,600   read 3.8 : 8.2   walk 150 : 94                 update 1.7 times
///     8,000 B, 60,000          insert 17,000 : 10,000   read 3.1 : 17    walk 200 : 180                update 4.6 times
///
/// Large rows make a key's B-tree deep, because its inner nodes hold whole rows; so documents, which may have 1 MiB,
/// pay for walks in the order of names. Index entries and the feed are small, and are walked.
enum FileFormat {
    /// "HRTH"
    static let applicationID = 0x4852_5448
    static let version = migrations.count

    /// Bytes of a page. 8 KiB pages make reads no faster, but a commit of scattered index entries writes whole pages.
    static let pageSizeBytes = 4096
    /// A page in the WAL, with its header.
    static let logPageSizeBytes = pageSizeBytes + 24

    /// `migrations[n]` takes a file from version n to n + 1. Forward only; a released migration is never edited.
    private static let migrations = [
        """
        CREATE TABLE documents (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL);
        CREATE TABLE entries (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE feed (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE meta (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
        """,
        "",
        "",
        "",
    ]

    static func newer(_ path: String, _ version: Int) -> Status {
        .failedPrecondition(
            "\(path) has format version \(version), which is newer than \(Self.version), the newest that this hearth"
                + " knows; use a newer hearth.")
    }

    /// Checks that a file is a Hearth database that can be read as it is, without changing it: all versions have the same
    /// tables.
    /// - Throws: NOT_FOUND for a file whose making was interrupted, FAILED_PRECONDITION for one of a newer version, DATA_LOSS
    ///   for one that is no Hearth database.
    /// - Parameter hasLog: whether a log is beside it, which is begun when the file is made.
    static func check(_ connection: Connection, path: String, hasLog: Bool) throws(Status) {
        if try version(connection, path: path) == 0 {
            if hasLog { throw lost(path) }
            throw .notFound("The file is empty: it was never written, or was truncated.")
        }
    }

    private static func lost(_ path: String) -> Status {
        Status(
            .dataLoss,
            "\(EngineError.fileName(path)) has no contents, but its log is there: it, or SQLite's WAL beside it, is damaged."
                + " Restore the file and its logs from one backup, or delete the database.")
    }

    /// The version of a file's format, 0 for one that isn't made yet.
    private static func version(_ connection: Connection, path: String) throws(Status) -> Int {
        let action = "cannot open \(EngineError.fileName(path))"
        let found = try connection.number("PRAGMA application_id", action)
        let version = try connection.number("PRAGMA user_version", action)
        if found != applicationID {
            let tables = try connection.number("SELECT count(*) FROM sqlite_schema", action)
            if found != 0 || version != 0 || tables != 0 {
                throw Status(
                    .dataLoss, "\(EngineError.fileName(path)) is a SQLite database, but not a Hearth database.")
            }
        }
        if version > Self.version { throw newer(path, version) }
        return version
    }

    /// Checks that a file is a Hearth database, makes it when it is new and migrates it to this version.
    /// - Parameter hasLog: whether a log is beside it, which is begun when the file is made.
    /// - Throws: DATA_LOSS when it has lost its contents, and no log.
    static func prepare(_ connection: Connection, path: String, hasLog: Bool) throws(Status) {
        let action = "cannot open \(EngineError.fileName(path))"
        let version = try version(connection, path: path)
        if version == 0, hasLog { throw lost(path) }
        if try connection.number("SELECT count(*) FROM sqlite_schema", action) == 0 {
            // Neither can be changed in WAL mode or once there is a table.
            try connection.execute("PRAGMA page_size = \(pageSizeBytes); PRAGMA auto_vacuum = NONE", action)
        }
        try connection.execute("PRAGMA journal_mode = WAL", action)
        if version >= Self.version { return }
        // All at once: a process that ends meanwhile leaves a file of the former version, and none between two.
        try connection.execute(
            """
            BEGIN IMMEDIATE;
            \(migrations[version...].joined());
            PRAGMA application_id = \(applicationID);
            PRAGMA user_version = \(Self.version);
            COMMIT
            """, action)
    }
}
