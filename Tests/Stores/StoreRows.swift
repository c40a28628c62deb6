import Glibc
import HearthModel
import HearthEngine

/// All of a walk.
package func rows(_ cursor: any KeyCursor) throws(Status) -> [Row] {
    var rows: [Row] = []
    while try cursor.next() {
        try cursor.withRow { key, value in rows.append(Row(key: Array(key), value: Array(value))) }
        // Both forms of a row are the same.
        if rows.last?.key != cursor.key || rows.last?.value != cursor.value {
            throw .internalError("The row is \(cursor.key) and \(cursor.value), and not \(rows.suffix(1)).")
        }
    }
    return rows
}

package struct Row: Equatable {
    package var key: [UInt8]
    package var value: [UInt8]

    package init(key: [UInt8], value: [UInt8]) {
        self.key = key
        self.value = value
    }
}

extension KeyRange {
    package static let all = KeyRange(lower: [], upper: nil)
}

/// A number as a key that sorts by it.
package func key(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
}

extension [UInt8] {
    /// Order by bytes, the shorter first; `lexicographicallyPrecedes` takes most of a test's time when unoptimised.
    package func precedes(_ other: [UInt8]) -> Bool {
        let order = memcmp(self, other, Swift.min(count, other.count))
        return order == 0 ? count < other.count : order < 0
    }
}
