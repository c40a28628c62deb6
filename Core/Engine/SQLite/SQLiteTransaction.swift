import CSQLite
import HearthModel
import HearthEngine

/// A lease of the writer's connection within BEGIN and COMMIT.
final class SQLiteTransaction: SQLiteView, StoreTransaction {
    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try connection.enter(lease)
        defer { connection.leave() }
        let statement = try connection.statement(.put, keyspace)
        let result = key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                var result = connection.bind(statement, 1, key)
                if result == SQLITE_OK { result = connection.bind(statement, 2, value) }
                if result == SQLITE_OK { result = sqlite3_step(statement) }
                sqlite3_reset(statement)
                return result
            }
        }
        if result != SQLITE_DONE { throw connection.fail(result, "cannot write") }
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        try connection.enter(lease)
        defer { connection.leave() }
        let statement = try connection.statement(.delete, keyspace)
        let result = key.withUnsafeBytes { key in
            var result = connection.bind(statement, 1, key)
            if result == SQLITE_OK { result = sqlite3_step(statement) }
            sqlite3_reset(statement)
            return result
        }
        if result != SQLITE_DONE { throw connection.fail(result, "cannot write") }
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        if limit <= 0 { return 0 }
        try connection.enter(lease)
        defer { connection.leave() }
        var range = range
        if limit < Int.max, let end = try keyAfter(limit, keyspace, range) { range.upper = end }
        let isEverything = range.lower.isEmpty && range.upper == nil
        let statement = try connection.statement(
            isEverything ? .deleteAll : .deleteRange, keyspace, bounded: range.upper != nil)
        let result = isEverything ? runWithoutRange(statement) : run(statement, range, number: nil) {}
        if result != SQLITE_DONE { throw connection.fail(result, "cannot write") }
        return Int(sqlite3_changes64(connection.handle))
    }

    private func runWithoutRange(_ statement: OpaquePointer) -> Int32 {
        let result = sqlite3_step(statement)
        sqlite3_reset(statement)
        return result
    }

    /// The key of a range that follows its first `count` keys.
    private func keyAfter(_ count: Int, _ keyspace: Keyspace, _ range: KeyRange) throws(Status) -> [UInt8]? {
        let statement = try connection.statement(.keyAfter, keyspace, bounded: range.upper != nil)
        var key: [UInt8]?
        let result = run(statement, range, number: count) { key = connection.column(statement, 0) }
        if result != SQLITE_ROW, result != SQLITE_DONE { throw connection.fail(result, "cannot read") }
        return key
    }

    /// Ends the lease; the store commits or rolls back.
    func close() {
        _ = connection.endLease(lease)
    }
}
