/// Finds the bytes of a string that JSON treats specially, eight at a time.
enum JSONScanner {
    /// The position of the first control character, quote or backslash at or after `start`; the end if there is none.
    @inline(__always)
    static func firstSpecial(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        let count = bytes.count
        while count &- index >= 8 {
            let found = special(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            // Bytes above the first hit may be marked wrongly, by a borrow; the lowest mark is right.
            if found != 0 { return index &+ found.trailingZeroBitCount / 8 }
            index &+= 8
        }
        while index < count {
            let byte = bytes[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return index }
            index &+= 1
        }
        return min(index, count)
    }

    /// Marks the high bit of each special byte.
    @inline(__always)
    private static func special(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quotes = word ^ (ones &* 0x22)
        let backslashes = word ^ (ones &* 0x5c)
        // (x - n) & ~x has a high bit where a byte is below n; bytes from 0x80 on are masked by ~x.
        let found =
            ((word &- ones &* 0x20) & ~word) | ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
        return found & 0x8080_8080_8080_8080
    }
}
