import CSQLite
import HearthModel

/// The current row of a statement: valid only inside of the closure that receives it.
package struct CacheRow {
    let statement: OpaquePointer

    package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
    package func time(_ column: Int32) -> Timestamp { Timestamp(microseconds: integer(column)) }
    package func string(_ column: Int32) -> String { String(decoding: raw(column), as: UTF8.self) }
    package func bytes(_ column: Int32) -> [UInt8] { [UInt8](raw(column)) }

    /// The column where SQLite has it.
    package func raw(_ column: Int32) -> UnsafeRawBufferPointer {
        guard let base = sqlite3_column_blob(statement, column) else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: base, count: Int(sqlite3_column_bytes(statement, column)))
    }
}
