/// Follows JSON that arrives in pieces: which bytes are in strings, and how deep the others are.
///
/// It is no lexer and checks nothing: a document may be larger than memory, and a token may be in two pieces. It is for
/// JSON that is known to be valid, or that its receiver reads with a `JSONLexer`.
@usableFromInline package struct JSONOutline {
    /// The number of open objects and arrays, after the last byte. Negative when there are more closing brackets.
    @usableFromInline package var depth = 0
    /// Whether the next byte is in a string, or its closing quote.
    @usableFromInline package var isInString = false
    @usableFromInline var isEscaped = false

    @inlinable package init() {}

    /// Space, line feed, carriage return and tab are the only white space.
    @inline(__always)
    @inlinable package static func isSpace(_ byte: UInt8) -> Bool {
        byte <= 0x20 && (byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09)
    }

    /// Takes the next byte.
    /// - Returns: whether it is a byte of the structure; otherwise it is in a string or the string's closing quote.
    @inline(__always)
    @inlinable package mutating func take(_ byte: UInt8) -> Bool {
        if isInString {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString = false
            }
            return false
        }
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
        return true
    }
}
