import CSQLite
import HearthModel

/// A parameter of a statement. Strings are bound as their bytes, so that SQLite compares bytes.
package enum CacheValue {
    case integer(Int64)
    case bytes([UInt8])
    case null

    package static func integer(_ number: Int) -> CacheValue { .integer(Int64(number)) }
    package static func integer(_ number: Int32) -> CacheValue { .integer(Int64(number)) }
    package static func time(_ time: Timestamp) -> CacheValue { .integer(time.microseconds) }
    package static func string(_ string: String) -> CacheValue { .bytes(Array(string.utf8)) }

    /// SQLITE_TRANSIENT, a macro with a cast that isn't imported.
    private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch self {
        case .integer(let number): return sqlite3_bind_int64(statement, index, number)
        case .null: return sqlite3_bind_null(statement, index)
        case .bytes(let bytes):
            // SQLite takes a null pointer for NULL, not for an empty value.
            if bytes.isEmpty { return sqlite3_bind_zeroblob(statement, index, 0) }
            return bytes.withUnsafeBytes {
                sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), Self.transient)
            }
        }
    }
}
