/// Reads a JSON document in borrowed memory, token by token. Strict: RFC 8259 and nothing beyond it.
///
/// A lexer holds a borrowed pointer and must not outlive the `withUnsafeBytes` call that created it. It never reads
/// outside of `bytes`, whatever they are.
@usableFromInline package struct JSONLexer<Failure: JSONReadingError> {
    /// The document ends where these end.
    @usableFromInline package let bytes: UnsafeRawBufferPointer
    /// The position of the document's first byte.
    @usableFromInline package let start: Int
    /// The position of the next token, or of white space before it. After an error, of what is wrong.
    @usableFromInline package var position: Int
    /// Whether the creator knows that the document is UTF-8; otherwise each string is checked when it is decoded.
    @usableFromInline let isUTF8: Bool
    /// The number of open objects and arrays.
    @usableFromInline package var depth = 0
    @usableFromInline package var depthMax: Int

    @inlinable package init(_ bytes: UnsafeRawBufferPointer, depthMax: Int, isUTF8: Bool) {
        self.bytes = bytes
        start = 0
        position = 0
        self.isUTF8 = isUTF8
        self.depthMax = depthMax
    }

    /// A document that is a part of some bytes. Positions are those of the bytes.
    @inlinable package init(_ bytes: UnsafeRawBufferPointer, in range: Range<Int>, depthMax: Int) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count, "a slice outside of its bytes")
        self.bytes = UnsafeRawBufferPointer(rebasing: bytes[..<range.upperBound])
        start = range.lowerBound
        position = start
        isUTF8 = false
        self.depthMax = depthMax
    }

    // MARK: Structure

    /// The first byte of the next token, after white space; nil at the end.
    @inline(__always)
    @inlinable package mutating func peek() -> UInt8? {
        while position < bytes.count {
            let byte = bytes[position]
            if !JSONOutline.isSpace(byte) { return byte }
            position &+= 1
        }
        return nil
    }

    /// Takes a structural byte.
    @inline(__always)
    @inlinable package mutating func expect(_ byte: UInt8) throws(Failure) {
        guard peek() == byte else { throw unexpected() }
        position &+= 1
    }

    /// Opens an object or an array; `nextMember` or `nextElement` closes it.
    @inline(__always)
    @inlinable package mutating func openContainer(_ byte: UInt8) throws(Failure) {
        try expect(byte)
        depth &+= 1
        if depth > depthMax { throw failure(.tooDeep, at: position &- 1) }
    }

    /// Whether an object has one more member; takes its key and colon if so, else the closing brace.
    @inline(__always)
    @inlinable package mutating func nextMember(_ isFirst: inout Bool) throws(Failure) -> JSONStringToken? {
        guard try nextItem(&isFirst, closing: UInt8(ascii: "}")) else { return nil }
        let key = try readStringToken()
        try expect(UInt8(ascii: ":"))
        return key
    }

    /// Whether an array has one more element; the position is before the element if so.
    @inline(__always)
    @inlinable package mutating func nextElement(_ isFirst: inout Bool) throws(Failure) -> Bool {
        try nextItem(&isFirst, closing: UInt8(ascii: "]"))
    }

    @inline(__always)
    @inlinable mutating func nextItem(_ isFirst: inout Bool, closing: UInt8) throws(Failure) -> Bool {
        let byte = peek()
        if byte == closing {
            position &+= 1
            depth &-= 1
            return false
        }
        if isFirst {
            isFirst = false
        } else {
            guard byte == UInt8(ascii: ",") else { throw unexpected() }
            position &+= 1
        }
        return true
    }

    /// Checks that nothing but white space follows.
    @inlinable package mutating func endDocument() throws(Failure) {
        if peek() != nil { throw unexpected() }
    }

    /// Returns to an earlier position at the same level.
    @inline(__always)
    @inlinable package mutating func rewind(to position: Int) {
        self.position = position
    }

    // MARK: Literals

    /// Takes `null` if it is the next token.
    @inline(__always)
    @inlinable package mutating func takeNull() throws(Failure) -> Bool {
        guard peek() == UInt8(ascii: "n") else { return false }
        try literal("null")
        return true
    }

    /// Takes `true` or `false` if it is the next token.
    @inlinable package mutating func takeBool() throws(Failure) -> Bool? {
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

    @inlinable mutating func literal(_ string: StaticString) throws(Failure) {
        let count = string.utf8CodeUnitCount
        guard bytes.count &- position >= count else { throw unexpected() }
        for index in 0..<count where bytes[position &+ index] != string.utf8Start[index] { throw unexpected() }
        position &+= count
    }

    // MARK: Values as a whole

    /// Skips any value, and returns its range. Its escapes are checked; whether its strings are UTF-8 is not.
    @discardableResult
    @inlinable package mutating func skipValue() throws(Failure) -> Range<Int> {
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
        return Range(uncheckedBounds: (start, position))
    }

    // MARK: Errors

    @inline(never)
    @inlinable package func unexpected() -> Failure {
        failure(position < bytes.count ? .unexpectedToken : .unexpectedEnd, at: position)
    }

    @inline(never)
    @inlinable package func failure(_ reason: JSONError.Reason, at offset: Int) -> Failure {
        Failure(json: JSONError(reason, at: offset))
    }
}
