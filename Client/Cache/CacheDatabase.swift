import CSQLite
import HearthModel
import HearthSQLite

/// The one connection to a client's cache file, with its prepared statements. Used by one thread at a time.
///
/// WAL mode with `synchronous = NORMAL`: a commit is handed to the system with `write`, and nothing waits for the disk.
/// A process that is killed, in whatever way, loses nothing that was acknowledged, for what it wrote lies in the
/// system's memory. Only when the system itself stops (power, kernel) the newest transactions may be missing; those
/// before them are whole. An acknowledged write of the server's is not lost then either: it comes again by listening.
///
/// The layer is "unix-excl": the file is locked against other programs and the log's index lies in this process's memory.
package final class CacheDatabase {
    package let path: String
    private var handle: OpaquePointer?
    /// The log's length in pages, as of the last commit; written by SQLite's hook.
    private let logPagesPointer = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
    /// Prepared statements that are not in use, by the address of their SQL. A statement that runs inside of its own loop has
    /// several.
    private var idle: [Int: [OpaquePointer]] = [:]
    /// The first sign of damage; the next opening examines the file thoroughly.
    package private(set) var damage: Status?
    /// Called once when damage shows.
    package var onDamage: (() -> Void)?

    package init(path: String, isReadOnly: Bool = false) throws(Status) {
        self.path = path
        logPagesPointer.initialize(to: 0)
        let flags =
            (isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE
        let result = sqlite3_open_v2(path, &handle, flags, "unix-excl")
        if result != SQLITE_OK {
            let status = failure(result, "Cannot open the cache \(path)")
            sqlite3_close(handle)
            handle = nil
            throw status
        }
        sqlite3_extended_result_codes(handle, 1)
    }

    deinit {
        close()
        logPagesPointer.deallocate()
    }

    /// Copies the log into the file. Harmless when repeated.
    package func close() {
        for statement in idle.values.joined() { sqlite3_finalize(statement) }
        idle = [:]
        let result = sqlite3_close(handle)
        assert(result == SQLITE_OK, "a statement wasn't finalised")
        handle = nil
    }

    // MARK: Errors

    /// A result as the cache reports it: RESOURCE_EXHAUSTED for a full disk, UNAVAILABLE for one that fails, DATA_LOSS for
    /// damage, else INTERNAL.
    package func failure(_ result: Int32, _ action: String) -> Status {
        var status = EngineError.status(handle, result, action)
        switch result & 0xFF {
        case SQLITE_FULL: status.code = .resourceExhausted
        // The client's own rows fulfil the tables' constraints.
        case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CONSTRAINT, SQLITE_MISMATCH: return damaged(status.message)
        case SQLITE_BUSY: status.code = .failedPrecondition
        case SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_NOMEM: status.code = .unavailable
        default: status.code = .internal
        }
        return status
    }

    /// A stored number that is counted on from.
    /// - Throws: DATA_LOSS, noted, for one that can't be: counting on from it could overflow.
    package func counter(_ number: Int64, max: Int64 = 1 << 53) throws(Status) -> Int64 {
        if 0...max ~= number { return number }
        throw damaged("The cache \(path) has a number that is none of its own: \(number).")
    }

    /// Notes that the contents of the file cannot be read.
    package func damaged(_ message: String) -> Status {
        let status = Status(.dataLoss, message)
        if damage == nil {
            damage = status
            onDamage?()
        }
        return status
    }

    private var action: String { "Cannot use the cache \(path)" }

    private func opened() throws(Status) -> OpaquePointer {
        guard let handle else { throw .failedPrecondition("The cache \(path) was closed.") }
        return handle
    }

    // MARK: Statements

    /// Runs SQL once, for rare statements.
    package func execute(_ string: String) throws(Status) {
        let result = sqlite3_exec(try opened(), string, nil, nil, nil)
        if result != SQLITE_OK { throw failure(result, action) }
    }

    /// The number in the first column of the first row, for rare queries.
    package func number(_ string: String) throws(Status) -> Int {
        var statement: OpaquePointer?
        var result = sqlite3_prepare_v2(try opened(), string, -1, &statement, nil)
        defer { sqlite3_finalize(statement) }
        if result == SQLITE_OK { result = sqlite3_step(statement) }
        guard result == SQLITE_ROW else { throw failure(result, action) }
        return Int(sqlite3_column_int64(statement, 0))
    }

    /// The first column of all rows, for rare queries.
    package func strings(_ string: String) throws(Status) -> [String] {
        var statement: OpaquePointer?
        var result = sqlite3_prepare_v2(try opened(), string, -1, &statement, nil)
        defer { sqlite3_finalize(statement) }
        var strings: [String] = []
        while result == SQLITE_OK || result == SQLITE_ROW {
            if result == SQLITE_ROW {
                strings.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
            }
            result = sqlite3_step(statement)
        }
        guard result == SQLITE_DONE else { throw failure(result, action) }
        return strings
    }

    /// Runs a statement that answers no rows.
    package func run(_ string: StaticString, _ values: CacheValue...) throws(Status) {
        try step(string, values) { _ throws(Status) in false }
    }

    /// Runs a statement and gives each of its rows to `body`, until that answers false.
    package func rows(
        _ string: StaticString, _ values: CacheValue..., body: (CacheRow) throws(Status) -> Bool
    ) throws(Status) {
        try step(string, values, body)
    }

    /// The first row of a statement's answer; nil when there is none.
    package func first<Result>(
        _ string: StaticString, _ values: CacheValue..., body: (CacheRow) throws(Status) -> Result
    ) throws(Status) -> Result? {
        var first: Result?
        try step(string, values) { row throws(Status) in
            first = try body(row)
            return false
        }
        return first
    }

    /// The rows that the last statement changed.
    package var changes: Int { Int(sqlite3_changes(handle)) }
    package var lastInsertedID: Int64 { sqlite3_last_insert_rowid(handle) }

    private func step(
        _ string: StaticString, _ values: [CacheValue], _ body: (CacheRow) throws(Status) -> Bool
    ) throws(Status) {
        let key = Int(bitPattern: string.utf8Start)
        let statement = try take(string, key)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
            idle[key, default: []].append(statement)
        }
        for (index, value) in values.enumerated() {
            let result = value.bind(to: statement, at: Int32(index + 1))
            if result != SQLITE_OK { throw failure(result, action) }
        }
        while true {
            let result = sqlite3_step(statement)
            if result == SQLITE_DONE { return }
            guard result == SQLITE_ROW else { throw failure(result, action) }
            if try !body(CacheRow(statement: statement)) { return }
        }
    }

    private func take(_ string: StaticString, _ key: Int) throws(Status) -> OpaquePointer {
        let handle = try opened()
        if let statement = idle[key]?.popLast() { return statement }
        var statement: OpaquePointer?
        let result = string.utf8Start.withMemoryRebound(to: CChar.self, capacity: string.utf8CodeUnitCount) {
            sqlite3_prepare_v3(
                handle, $0, Int32(string.utf8CodeUnitCount), UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        }
        guard result == SQLITE_OK, let statement else { throw failure(result, action) }
        return statement
    }

    // MARK: The log

    package var logPages: Int { Int(logPagesPointer.pointee) }

    /// Nobody copies the log any more unless `checkpoint` is called.
    package func observeLog() {
        sqlite3_wal_hook(
            handle,
            { pointer, _, _, pages in
                pointer?.assumingMemoryBound(to: Int32.self).pointee = pages
                return SQLITE_OK
            }, logPagesPointer)
    }

    /// Copies as much of the log into the file as nobody needs to stay, and waits for the disk. Nobody may write
    /// meanwhile: see `checkpointBesideWriter`.
    package func checkpoint() throws(Status) {
        let result = sqlite3_wal_checkpoint_v2(try opened(), nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        // Somebody else is at it.
        if result != SQLITE_OK, result & 0xFF != SQLITE_BUSY { throw failure(result, action) }
    }

    /// The same for a connection beside the one that writes. There must be one such connection at most, which hasn't
    /// written: then a log that isn't fully copied can't be begun anew, and one that is isn't touched; see `LogIndex`.
    /// - Returns: whether there was something to copy.
    @discardableResult
    package func checkpointBesideWriter() throws(Status) -> Bool {
        // The log's index is there once something was read.
        _ = try number("SELECT count(*) FROM sqlite_schema")
        guard let index = LogIndex(handle), !index.isFullyCopied else { return false }
        try checkpoint()
        return true
    }

    // MARK: Transactions

    package func begin() throws(Status) { try run("BEGIN") }
    package func commit() throws(Status) { try run("COMMIT") }

    /// SQLite ends a transaction itself after some failures.
    package func rollBack() throws(Status) {
        if isInTransaction { try run("ROLLBACK") }
    }

    package var isInTransaction: Bool { handle != nil && sqlite3_get_autocommit(handle) == 0 }
}
