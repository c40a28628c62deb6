import Glibc

/// Comparison of strings by their UTF-8 bytes.
///
/// Firestore orders and identifies strings by bytes. Swift's own `==` and `<` compare by canonical equivalence: the two
/// spellings of "é" would be one string, and two documents would become one.
@usableFromInline package enum UTF8Order {
    /// Negative, zero or positive, as `lhs` sorts before, equal to or after `rhs`.
    @inlinable
    package static func compare(_ lhs: String, _ rhs: String) -> Int {
        let fast = lhs.utf8.withContiguousStorageIfAvailable { left in
            rhs.utf8.withContiguousStorageIfAvailable { right in
                compare(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer(right))
            }
        }
        if let outer = fast, let result = outer { return result }
        return compare(Array(lhs.utf8), Array(rhs.utf8))
    }

    @inlinable
    package static func compare(_ lhs: [UInt8], _ rhs: [UInt8]) -> Int {
        lhs.withUnsafeBytes { left in rhs.withUnsafeBytes { right in compare(left, right) } }
    }

    @inlinable
    package static func compare(_ lhs: UnsafeRawBufferPointer, _ rhs: UnsafeRawBufferPointer) -> Int {
        let shared = min(lhs.count, rhs.count)
        if shared > 0 {
            let order = memcmp(lhs.baseAddress!, rhs.baseAddress!, shared)
            if order != 0 { return Int(order) }
        }
        return lhs.count - rhs.count
    }

    /// Feeds a string's bytes and its length to a hasher, in one call.
    @inlinable package static func hash(_ string: String, into hasher: inout Hasher) {
        hasher.combine(string.utf8.count)
        if string.utf8.withContiguousStorageIfAvailable({ hasher.combine(bytes: UnsafeRawBufferPointer($0)) }) == nil {
            Array(string.utf8).withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    @inlinable
    package static func equal(_ lhs: String, _ rhs: String) -> Bool {
        lhs.utf8.count == rhs.utf8.count && compare(lhs, rhs) == 0
    }
}
