import CSQLite
import HearthModel
import HearthEngine

/// SQLite by its C interface, as its documentation recommends for durable writes: a log, `synchronous = FULL`, prepared
/// statements. The tables, the page size and the cache size are those of Hearth's store; checkpoints and disk access
/// are SQLite's own.
final class PlainSQLite: StorageEngine, RowWriter {
    private var handle: OpaquePointer?
    private var puts: [Keyspace: OpaquePointer] = [:]
    private var deletes: [Keyspace: OpaquePointer] = [:]

    private static let keyspaces: [Keyspace] = [.documents, .entries, .feed]

    init(folder: String) throws(Status) {
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        // Not the process's default, which may be Hearth's own layer.
        try check(sqlite3_open_v2(folder + "/plain.sqlite", &handle, flags, "unix-excl"))
        try execute(
            """
            PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
            PRAGMA secure_delete = OFF;
            CREATE TABLE documents (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL);
            CREATE TABLE entries (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE feed (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            """)
        for keyspace in Self.keyspaces {
            puts[keyspace] = try prepare(
                "INSERT INTO \(keyspace) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            deletes[keyspace] = try prepare("DELETE FROM \(keyspace) WHERE key = ?")
        }
    }

    func transaction(_ body: (any RowWriter) throws(Status) -> Void) throws(Status) {
        try execute("BEGIN IMMEDIATE")
        try body(self)
        try execute("COMMIT")
    }

    func close() {
        for statement in [puts.values, deletes.values].joined() { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    // MARK: Rows

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try run(puts[keyspace], [key, value])
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) { try run(deletes[keyspace], [key]) }

    private func run(_ statement: OpaquePointer?, _ blobs: [[UInt8]]) throws(Status) {
        for (index, blob) in blobs.enumerated() {
            // A null pointer would be NULL.
            if blob.isEmpty {
                sqlite3_bind_zeroblob(statement, Int32(index + 1), 0)
            } else {
                // SQLITE_TRANSIENT, a cast that Swift doesn't import: SQLite copies the bytes.
                let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
                sqlite3_bind_blob(statement, Int32(index + 1), blob, Int32(blob.count), copies)
            }
        }
        let result = sqlite3_step(statement)
        sqlite3_reset(statement)
        try check(result == SQLITE_DONE ? SQLITE_OK : result)
    }

    // MARK: Statements

    private func prepare(_ string: String) throws(Status) -> OpaquePointer? {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v3(handle, string, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        return statement
    }

    private func execute(_ string: String) throws(Status) { try check(sqlite3_exec(handle, string, nil, nil, nil)) }

    private func check(_ result: Int32) throws(Status) {
        if result != SQLITE_OK { throw .internalError("SQLite: \(String(cString: sqlite3_errmsg(handle)))") }
    }
}
