import HearthModel

/// Strings from borrowed bytes: invalid UTF-8 is an error, and is never repaired.
package enum UTF8String {
    /// - Throws: INVALID_ARGUMENT when the bytes are not valid UTF-8.
    @inline(__always)
    static func string(_ bytes: UnsafeRawBufferPointer) throws(Status) -> String {
        guard isValid(bytes) else { throw invalid() }
        return String(decoding: bytes, as: UTF8.self)
    }

    @inline(never)
    static func invalid() -> Status { .invalidArgument("A string is not valid UTF-8.") }

    /// Whether all bytes are well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
    @inline(__always)
    package static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let ascii = asciiPrefix(bytes, from: 0)
        return ascii == bytes.count || isValid(bytes, from: ascii)
    }

    /// The position of the first non-ASCII byte at or after `start`.
    @inline(__always)
    private static func asciiPrefix(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        let count = bytes.count
        while count &- index >= 8 {
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            if word & 0x8080_8080_8080_8080 != 0 { break }
            index &+= 8
        }
        while index < count, bytes[index] < 0x80 { index &+= 1 }
        return index
    }

    @inline(never)
    private static func isValid(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Bool {
        var index = start
        let count = bytes.count
        while index < count {
            let first = bytes[index]
            if first < 0x80 {
                index = asciiPrefix(bytes, from: index)
                continue
            }
            let length: Int
            var second: ClosedRange<UInt8> = 0x80...0xBF
            switch first {
            case 0xC2...0xDF: length = 2
            case 0xE0: (length, second) = (3, 0xA0...0xBF)
            case 0xED: (length, second) = (3, 0x80...0x9F)
            case 0xE1...0xEF: length = 3
            case 0xF0: (length, second) = (4, 0x90...0xBF)
            case 0xF4: (length, second) = (4, 0x80...0x8F)
            case 0xF1...0xF3: length = 4
            default: return false
            }
            guard count - index >= length, second.contains(bytes[index + 1]) else { return false }
            if length > 2, bytes[index + 2] & 0xC0 != 0x80 { return false }
            if length > 3, bytes[index + 3] & 0xC0 != 0x80 { return false }
            index += length
        }
        return true
    }
}
