/// Looks at the bytes of strings, eight at a time.
@usableFromInline enum JSONScanner {
    /// Finds the bytes that JSON treats specially.
    /// - Returns: the position of the first control character, quote or backslash at or after `start`; the end if there is none.
    @inline(__always)
    @inlinable static func firstSpecial(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        let count = bytes.count
        while count &- index >= 8 {
            let found = special(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            // Bytes above the first hit may be marked wrongly, by a borrow; the lowest mark is right.
            if found != 0 { return index &+ found.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        while index < count {
            let byte = bytes[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return index }
            index &+= 1
        }
        return count
    }

    /// Whether no byte is a part of a longer character.
    @inline(__always)
    @inlinable static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        let count = bytes.count
        while count &- index >= 8 {
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            if word & 0x8080_8080_8080_8080 != 0 { return false }
            index &+= 8
        }
        while index < count {
            if bytes[index] >= 0x80 { return false }
            index &+= 1
        }
        return true
    }

    /// Marks the high bit of each special byte.
    @inline(__always)
    @inlinable static func special(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quotes = word ^ (ones &* 0x22)
        let backslashes = word ^ (ones &* 0x5c)
        // (x - n) & ~x has a high bit where a byte is below n; bytes from 0x80 on are masked by ~x.
        let found =
            ((word &- ones &* 0x20) & ~word) | ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
        return found & 0x8080_8080_8080_8080
    }
}
