/// The escapes of strings.
@usableFromInline package enum JSONEscape {
    /// The character of an escape.
    /// - Parameter index: the position after the backslash; after the escape when it is valid.
    @usableFromInline package static func read(_ bytes: UnsafeRawBufferPointer, _ index: inout Int) throws(JSONError)
        -> Unicode.Scalar
    {
        guard index < bytes.count else { throw JSONError(.invalidEscape, at: index) }
        let kind = bytes[index]
        let scalar: Unicode.Scalar
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): scalar = Unicode.Scalar(kind)
        case UInt8(ascii: "b"): scalar = "\u{8}"
        case UInt8(ascii: "f"): scalar = "\u{c}"
        case UInt8(ascii: "n"): scalar = "\n"
        case UInt8(ascii: "r"): scalar = "\r"
        case UInt8(ascii: "t"): scalar = "\t"
        case UInt8(ascii: "u"): return try unicode(bytes, &index)
        default: throw JSONError(.invalidEscape, at: index)
        }
        index += 1
        return scalar
    }

    /// `\u` and four digits, twice for a surrogate pair. The position is at the `u`.
    private static func unicode(
        _ bytes: UnsafeRawBufferPointer, _ index: inout Int
    ) throws(JSONError) -> Unicode.Scalar {
        let first = try hexadecimal(bytes, from: index + 1)
        if let scalar = Unicode.Scalar(first) {
            index += 5
            return scalar
        }
        guard first < 0xdc00, bytes.count - index >= 11, bytes[index + 5] == UInt8(ascii: "\\"),
            bytes[index + 6] == UInt8(ascii: "u")
        else { throw JSONError(.unpairedSurrogate, at: index) }
        let second = try hexadecimal(bytes, from: index + 7)
        guard second & 0xfc00 == 0xdc00,
            let scalar = Unicode.Scalar(0x10000 + (first & 0x3ff) << 10 + second & 0x3ff)
        else { throw JSONError(.unpairedSurrogate, at: index) }
        index += 11
        return scalar
    }

    private static func hexadecimal(_ bytes: UnsafeRawBufferPointer, from start: Int) throws(JSONError) -> UInt32 {
        guard bytes.count - start >= 4 else { throw JSONError(.invalidEscape, at: start) }
        var value: UInt32 = 0
        for index in start..<start + 4 {
            let digit: UInt8
            switch bytes[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[index] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[index] - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = bytes[index] - UInt8(ascii: "A") + 10
            default: throw JSONError(.invalidEscape, at: index)
            }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}
