import CSQLite
import HearthModel
import HearthEngine

/// What snapshots and transactions share: reads under one lease of a connection.
class SQLiteView {
    let connection: Connection
    let lease: Int

    init(_ connection: Connection, lease: Int) {
        self.connection = connection
        self.lease = lease
    }

    final func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try value(keyspace, key) { Array($0) }
    }

    final func read(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) -> Bool {
        let result = try value(keyspace, key) { bytes in Result { () throws(Status) in try body(bytes) } }
        try result?.get()
        return result != nil
    }

    /// The result of `body` for the value at a key; nil when there is none.
    @inline(__always)
    private func value<Value>(
        _ keyspace: Keyspace, _ key: [UInt8], _ body: (UnsafeRawBufferPointer) -> Value
    ) throws(Status) -> Value? {
        try connection.enter(lease)
        defer { connection.leave() }
        let statement = try connection.statement(.get, keyspace)
        var value: Value?
        let result = key.withUnsafeBytes { key in
            var result = connection.bind(statement, 1, key)
            if result == SQLITE_OK { result = sqlite3_step(statement) }
            if result == SQLITE_ROW { value = body(connection.columnBytes(statement, 0)) }
            sqlite3_reset(statement)
            return result
        }
        if result != SQLITE_ROW, result != SQLITE_DONE { throw connection.fail(result, "cannot read") }
        return value
    }

    final func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        SQLiteCursor(connection, lease: lease, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    final func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        if limit <= 0 { return 0 }
        try connection.enter(lease)
        defer { connection.leave() }
        let unlimited = limit == Int.max
        let statement = try connection.statement(
            unlimited ? .count : .countUpTo, keyspace, bounded: range.upper != nil)
        var count = 0
        let result = run(statement, range, number: unlimited ? nil : limit) {
            count = Int(sqlite3_column_int64(statement, 0))
        }
        if result != SQLITE_ROW { throw connection.fail(result, "cannot count") }
        return count
    }

    /// Runs a statement over a range up to its first row and resets it.
    /// - Parameter number: `?3`, when the statement has it.
    final func run(_ statement: OpaquePointer, _ range: KeyRange, number: Int?, row: () -> Void) -> Int32 {
        range.lower.withUnsafeBytes { lower in
            (range.upper ?? []).withUnsafeBytes { upper in
                var result = connection.bind(statement, 1, lower)
                if result == SQLITE_OK, range.upper != nil { result = connection.bind(statement, 2, upper) }
                if result == SQLITE_OK, let number { result = sqlite3_bind_int64(statement, 3, Int64(number)) }
                if result == SQLITE_OK { result = sqlite3_step(statement) }
                if result == SQLITE_ROW { row() }
                sqlite3_reset(statement)
                return result
            }
        }
    }
}
