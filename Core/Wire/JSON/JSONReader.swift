import HearthModel

/// Reads a JSON document in borrowed memory, token by token. Strict: RFC 8259 and nothing beyond it.
///
/// The initializer checks once that the whole document is UTF-8; afterwards strings need no check. A reader holds a
/// borrowed pointer and must not outlive the `withUnsafeBytes` call that created it.
package struct JSONReader {
    package let bytes: UnsafeRawBufferPointer
    package private(set) var position = 0
    /// The number of open objects and arrays.
    private var depth = 0

    /// A string token: its content's range between the quotes.
    package struct StringToken {
        package var range: Range<Int>
        /// Whether the content has escapes, and so differs from the string.
        package var hasEscapes: Bool
    }

    /// - Throws: `INVALID_ARGUMENT` when the document is not valid UTF-8.
    @inlinable package init(_ bytes: UnsafeRawBufferPointer) throws(Status) {
        self.bytes = bytes
        guard UTF8String.isValid(bytes) else { throw Self.syntax("The document is not valid UTF-8.") }
    }

    // MARK: Structure

    /// The first byte of the next token; nil at the end.
    @inline(__always)
    package mutating func peek() -> UInt8? {
        while position < bytes.count {
            let byte = bytes[position]
            // Space, line feed, carriage return and tab are the only white space.
            if byte > 0x20 || !(byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09) { return byte }
            position += 1
        }
        return nil
    }

    /// Takes a structural byte.
    @inline(__always)
    @inlinable package mutating func expect(_ byte: UInt8) throws(Status) {
        guard peek() == byte else { throw unexpected() }
        position += 1
    }

    /// Opens an object or an array; `closeContainer` must follow.
    @inline(__always)
    @inlinable package mutating func openContainer(_ byte: UInt8) throws(Status) {
        try expect(byte)
        depth += 1
        // Each level of messages opens at most one container, so the same limit serves both forms.
        if depth > Limits.messageDepthMax { throw ProtobufReader.tooDeep() }
    }

    /// Whether an object has one more member; takes its key and colon if so, else the closing brace.
    @inline(__always)
    @inlinable package mutating func nextMember(_ isFirst: inout Bool) throws(Status) -> StringToken? {
        guard try nextItem(&isFirst, closing: UInt8(ascii: "}")) else { return nil }
        guard peek() == UInt8(ascii: "\"") else { throw unexpected() }
        let key = try readStringToken()
        try expect(UInt8(ascii: ":"))
        return key
    }

    /// Whether an array has one more element; the position is at the element if so.
    @inline(__always)
    @inlinable package mutating func nextElement(_ isFirst: inout Bool) throws(Status) -> Bool {
        try nextItem(&isFirst, closing: UInt8(ascii: "]"))
    }

    @inline(__always)
    private mutating func nextItem(_ isFirst: inout Bool, closing: UInt8) throws(Status) -> Bool {
        let byte = peek()
        if byte == closing {
            position += 1
            depth -= 1
            return false
        }
        if isFirst {
            isFirst = false
        } else {
            guard byte == UInt8(ascii: ",") else { throw unexpected() }
            position += 1
        }
        return true
    }

    /// Checks that nothing but white space follows.
    @inlinable package mutating func endDocument() throws(Status) {
        if peek() != nil { throw unexpected() }
    }

    // MARK: Literals

    /// Takes `null` if it is the next token.
    @inline(__always)
    @inlinable package mutating func takeNull() throws(Status) -> Bool {
        guard peek() == UInt8(ascii: "n") else { return false }
        try literal("null")
        return true
    }

    /// Takes `true` or `false` if it is the next token.
    package mutating func takeBool() throws(Status) -> Bool? {
        switch peek() {
        case UInt8(ascii: "t"):
            try literal("true")
            return true
        case UInt8(ascii: "f"):
            try literal("false")
            return false
        default:
            return nil
        }
    }

    private mutating func literal(_ string: StaticString) throws(Status) {
        let count = string.utf8CodeUnitCount
        guard bytes.count - position >= count else { throw unexpected() }
        for index in 0..<count where bytes[position + index] != string.utf8Start[index] { throw unexpected() }
        position += count
    }

    // MARK: Numbers

    /// Takes a number's token and returns its range. The grammar of RFC 8259: no plus sign, no leading zeros, digits on
    /// both sides of a point.
    package mutating func readNumber() throws(Status) -> Range<Int> {
        _ = peek()
        let start = position
        if take("-") {}
        if take("0") {
            if isDigit { throw unexpected() }
        } else {
            try digits()
        }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        return start..<position
    }

    @inline(__always)
    private var isDigit: Bool {
        position < bytes.count && bytes[position] &- UInt8(ascii: "0") < 10
    }

    @inline(__always)
    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(truncatingIfNeeded: scalar.value) else { return false }
        position += 1
        return true
    }

    @inline(__always)
    private mutating func digits() throws(Status) {
        guard isDigit else { throw unexpected() }
        repeat { position += 1 } while isDigit
    }

    // MARK: Strings

    /// Takes a string's token.
    package mutating func readStringToken() throws(Status) -> StringToken {
        try expect(UInt8(ascii: "\""))
        let start = position
        var index = start
        var hasEscapes = false
        while true {
            index = JSONScanner.firstSpecial(bytes, from: index)
            guard index < bytes.count, bytes[index] >= 0x20 else {
                position = index
                throw unexpected()
            }
            if bytes[index] == UInt8(ascii: "\"") {
                position = index &+ 1
                return StringToken(range: Range(uncheckedBounds: (start, index)), hasEscapes: hasEscapes)
            }
            // The byte after a backslash cannot end the string; its meaning is checked when the string is decoded.
            hasEscapes = true
            index &+= 2
        }
    }

    @inlinable package mutating func readString() throws(Status) -> String {
        try string(try readStringToken())
    }

    /// The string of a token.
    @inline(__always)
    @inlinable package func string(_ string: StringToken) throws(Status) -> String {
        if string.hasEscapes { return String(decoding: try unescaped(string), as: UTF8.self) }
        return String(decoding: ProtobufReader.slice(bytes, string.range), as: UTF8.self)
    }

    /// The UTF-8 bytes of a string token with escapes.
    @inline(never)
    package func unescaped(_ string: StringToken) throws(Status) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(string.range.count)
        var index = string.range.lowerBound
        while index < string.range.upperBound {
            let byte = bytes[index]
            index += 1
            if byte != UInt8(ascii: "\\") {
                result.append(byte)
                continue
            }
            let escape = bytes[index]
            index += 1
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): result.append(escape)
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0c)
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"): result.append(contentsOf: String(try scalar(&index, string.range.upperBound)).utf8)
            default: throw Self.syntax("Invalid escape sequence in a string.")
            }
        }
        return result
    }

    /// Reads the digits of `\u`, and of the second half of a surrogate pair.
    private func scalar(_ index: inout Int, _ end: Int) throws(Status) -> Unicode.Scalar {
        let first = try hexadecimal(&index, end)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xdc00, end - index >= 6, bytes[index] == UInt8(ascii: "\\"),
            bytes[index + 1] == UInt8(ascii: "u")
        else { throw Self.syntax("A string has a surrogate that is not in a pair.") }
        index += 2
        let second = try hexadecimal(&index, end)
        guard second >= 0xdc00, second <= 0xdfff,
            let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
        else { throw Self.syntax("A string has a surrogate that is not in a pair.") }
        return scalar
    }

    private func hexadecimal(_ index: inout Int, _ end: Int) throws(Status) -> UInt32 {
        guard end - index >= 4 else { throw Self.syntax("Invalid escape sequence in a string.") }
        var value: UInt32 = 0
        for _ in 0..<4 {
            let digit: UInt8
            switch bytes[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[index] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[index] - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = bytes[index] - UInt8(ascii: "A") + 10
            default: throw Self.syntax("Invalid escape sequence in a string.")
            }
            value = value << 4 | UInt32(digit)
            index += 1
        }
        return value
    }

    // MARK: Values as a whole

    /// Skips any value, and returns its range.
    @discardableResult
    package mutating func skipValue() throws(Status) -> Range<Int> {
        guard let byte = peek() else { throw unexpected() }
        let start = position
        switch byte {
        case UInt8(ascii: "{"):
            try openContainer(byte)
            var isFirst = true
            while let key = try nextMember(&isFirst) {
                if key.hasEscapes { _ = try unescaped(key) }
                try skipValue()
            }
        case UInt8(ascii: "["):
            try openContainer(byte)
            var isFirst = true
            while try nextElement(&isFirst) { try skipValue() }
        case UInt8(ascii: "\""):
            let string = try readStringToken()
            if string.hasEscapes { _ = try unescaped(string) }
        case UInt8(ascii: "t"), UInt8(ascii: "f"): _ = try takeBool()
        case UInt8(ascii: "n"): _ = try takeNull()
        default: _ = try readNumber()
        }
        return start..<position
    }

    /// Returns to an earlier position at the same level.
    mutating func rewind(to position: Int) {
        self.position = position
    }

    // MARK: Errors

    @inline(never)
    func unexpected() -> Status {
        Self.syntax(
            position < bytes.count ? "Unexpected token at byte \(position)." : "Unexpected end of the document.")
    }

    @inline(never)
    static func syntax(_ reason: String) -> Status { .invalidArgument("Invalid JSON payload received. \(reason)") }
}
