/// Checks UTF-8 that arrives in pieces, which may be split within a character. Source: RFC 3629, 4.
struct UTF8Validator {
    /// The number of bytes that the current character still needs, and the range of the next byte. The second byte
    /// shows overlong forms, surrogates and numbers past U+10FFFF.
    private var needed: UInt8 = 0
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xBF

    /// The bytes so far end with a whole character.
    var isComplete: Bool { needed == 0 }

    /// False when no following bytes can make it valid.
    mutating func accept(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var position = 0
        while position < bytes.count {
            if needed == 0 {
                while position + 8 <= bytes.count,
                    bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
                {
                    position += 8
                }
                guard position < bytes.count else { break }
            }
            guard accept(bytes[position]) else { return false }
            position += 1
        }
        return true
    }

    private mutating func accept(_ byte: UInt8) -> Bool {
        if needed > 0 {
            guard byte >= lower, byte <= upper else { return false }
            needed -= 1
            lower = 0x80
            upper = 0xBF
            return true
        }
        switch byte {
        case 0x00...0x7F: break
        case 0xC2...0xDF: needed = 1
        case 0xE0...0xEF:
            needed = 2
            if byte == 0xE0 { lower = 0xA0 }
            if byte == 0xED { upper = 0x9F }
        case 0xF0...0xF4:
            needed = 3
            if byte == 0xF0 { lower = 0x90 }
            if byte == 0xF4 { upper = 0x8F }
        default: return false
        }
        return true
    }

    static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var validator = UTF8Validator()
        return validator.accept(bytes) && validator.isComplete
    }
}
