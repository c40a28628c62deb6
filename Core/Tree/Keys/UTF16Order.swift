/// Comparison of strings by UTF-16 code units, in which characters beyond U+FFFF are before U+E000 to U+FFFF.
package enum UTF16Order {
    /// Negative, zero or positive, as `lhs` is before, at or after `rhs`.
    package static func compare(_ lhs: String, _ rhs: String) -> Int {
        TreeKey.withBytes(lhs) { left in TreeKey.withBytes(rhs) { right in compare(left, right) } }
    }

    static func compare(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int {
        let shared = min(left.count, right.count)
        var index = 0
        while index < shared, left[index] == right[index] { index += 1 }
        if index == shared { return left.count - right.count }
        return Int(rank(left[index])) - Int(rank(right[index]))
    }

    /// UTF-8 has the order of code points. With its lead bytes EE and EF (U+E000 to U+FFFF) behind F0 to F4 it has the
    /// order of UTF-16.
    package static func rank(_ byte: UInt8) -> UInt8 { byte == 0xEE || byte == 0xEF ? byte + 7 : byte }
}
