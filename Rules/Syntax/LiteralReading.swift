/// Reads strings and bytes with their escapes.
extension Lexer {
    /// Reads a literal whose quote is at the position.
    mutating func literal(from start: Int, isBytes: Bool) -> Token {
        let quote = source[position]
        position += 1
        var content: [UInt8] = []
        var surrogate: UInt32?
        while position < source.count {
            let byte = source[position]
            if byte == quote {
                position += 1
                Self.appendUnpaired(&surrogate, to: &content)
                let range = SourceRange(start, position)
                if isBytes { return Token(kind: .bytes(content), range: range) }
                return Token(kind: .string(String(decoding: content, as: UTF8.self)), range: range)
            }
            position += 1
            if byte != UInt8(ascii: "\\") {
                Self.appendUnpaired(&surrogate, to: &content)
                content.append(byte)
                continue
            }
            guard let code = escape() else { break }
            if isBytes, code.isByte {
                content.append(UInt8(truncatingIfNeeded: code.value))
            } else {
                Self.append(code.value, after: &surrogate, to: &content)
            }
        }
        return Token(kind: .unclosed(quote), range: SourceRange(start, position))
    }

    /// The character of the escape after a `\`; nil when there is no such escape, with the position after the `\`.
    private mutating func escape() -> (value: UInt32, isByte: Bool)? {
        let simple: [UInt8: UInt32] = [
            UInt8(ascii: "\\"): 0x5C, UInt8(ascii: "'"): 0x27, UInt8(ascii: "\""): 0x22, UInt8(ascii: "/"): 0x2F,
            UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09, UInt8(ascii: "b"): 0x08,
            UInt8(ascii: "f"): 0x0C,
        ]
        let kind = byte(position)
        if let value = simple[kind] {
            position += 1
            return (value, false)
        }
        switch kind {
        case UInt8(ascii: "x"): return digits(2, radix: 16, from: position + 1).map { ($0, true) }
        case UInt8(ascii: "u"): return digits(4, radix: 16, from: position + 1).map { ($0, false) }
        case UInt8(ascii: "0")...UInt8(ascii: "3"): return digits(3, radix: 8, from: position).map { ($0, true) }
        default: return nil
        }
    }

    private mutating func digits(_ count: Int, radix: UInt32, from start: Int) -> UInt32? {
        var value: UInt32 = 0
        for offset in start..<start + count {
            guard let digit = Character(Unicode.Scalar(byte(offset))).hexDigitValue, digit < radix else { return nil }
            value = value * radix + UInt32(digit)
        }
        position = start + count
        return value
    }

    /// Appends a UTF-16 code unit: a surrogate pair makes one character; a single surrogate is invalid.
    private static func append(_ value: UInt32, after surrogate: inout UInt32?, to content: inout [UInt8]) {
        if let high = surrogate, (0xDC00...0xDFFF).contains(value) {
            surrogate = nil
            append(scalar: 0x10000 + (high - 0xD800) << 10 + (value - 0xDC00), to: &content)
            return
        }
        appendUnpaired(&surrogate, to: &content)
        if (0xD800...0xDBFF).contains(value) { surrogate = value } else { append(scalar: value, to: &content) }
    }

    private static func appendUnpaired(_ surrogate: inout UInt32?, to content: inout [UInt8]) {
        if surrogate != nil { append(scalar: 0xFFFD, to: &content) }
        surrogate = nil
    }

    private static func append(scalar value: UInt32, to content: inout [UInt8]) {
        content.append(contentsOf: String(Unicode.Scalar(value) ?? "\u{FFFD}").utf8)
    }
}
