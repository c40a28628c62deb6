import CSQLite

/// The copy: a SQLite file with the documents and the position in the feed.
///
/// Both change in one transaction at the end of a commit of the database, so that the file always has the documents of one
/// version, and the position behind it, whenever the program is killed.
final class Copy {
    struct Failure: Error {
        var message: String
    }

    private var handle: OpaquePointer?
    private var put: OpaquePointer?
    private var remove: OpaquePointer?
    private var move: OpaquePointer?
    private var isChanging = false

    init(_ path: String) throws {
        guard sqlite3_open(path, &handle) == SQLITE_OK else { throw failure() }
        try run("PRAGMA journal_mode = WAL")
        try run(
            "CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, fields TEXT NOT NULL, updateTime TEXT NOT NULL)"
        )
        try run("CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), token TEXT NOT NULL)")
        put = try prepare("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)")
        remove = try prepare("DELETE FROM documents WHERE name = ?")
        move = try prepare("INSERT OR REPLACE INTO position VALUES (1, ?)")
    }

    deinit {
        for statement in [put, remove, move] { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    /// Behind which commit it goes on; nil before the first snapshot is complete.
    func position() throws -> String? {
        let statement = try prepare("SELECT token FROM position")
        defer { sqlite3_finalize(statement) }
        guard sqlite3_step(statement) == SQLITE_ROW, let text = sqlite3_column_text(statement, 0) else { return nil }
        return String(cString: text)
    }

    /// All documents come anew. Those of before stay visible to others until all have come.
    func beginAnew() throws {
        try begin()
        try run("DELETE FROM documents")
        try run("DELETE FROM position")
    }

    /// - Parameter fields: as JSON; nil when the document was deleted.
    func set(_ name: String, _ fields: String?, _ updateTime: String) throws {
        try begin()
        if let fields {
            try step(put, [name, fields, updateTime])
        } else {
            try step(remove, [name])
        }
    }

    /// The end of a commit.
    func end(at token: String) throws {
        try begin()
        try step(move, [token])
        try run("COMMIT")
        isChanging = false
    }

    /// The end of a snapshot without documents, which has no position.
    func finish() throws {
        if isChanging { try run("COMMIT") }
        isChanging = false
    }

    /// Forgets what has come of a commit that wasn't over.
    func undo() throws {
        if isChanging { try run("ROLLBACK") }
        isChanging = false
    }

    private func begin() throws {
        if !isChanging { try run("BEGIN IMMEDIATE") }
        isChanging = true
    }

    private func run(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    private func prepare(_ sql: String) throws -> OpaquePointer? {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else { throw failure() }
        return statement
    }

    private func step(_ statement: OpaquePointer?, _ values: [String]) throws {
        // SQLite copies the strings.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        for (index, value) in values.enumerated() {
            sqlite3_bind_text(statement, Int32(index + 1), value, Int32(value.utf8.count), transient)
        }
        let result = sqlite3_step(statement)
        sqlite3_reset(statement)
        guard result == SQLITE_DONE else { throw failure() }
    }

    private func failure() -> Failure { Failure(message: String(cString: sqlite3_errmsg(handle))) }
}
