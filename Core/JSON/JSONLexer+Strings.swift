/// A string: its content's range between the quotes.
@usableFromInline package struct JSONStringToken {
    @usableFromInline package var range: Range<Int>
    /// Whether the content has escapes, and so differs from the string.
    @usableFromInline package var hasEscapes: Bool

    @inlinable package init(range: Range<Int>, hasEscapes: Bool) {
        self.range = range
        self.hasEscapes = hasEscapes
    }
}

extension JSONLexer {
    /// Takes a string. The meaning of its escapes is checked when it is decoded.
    @inline(__always)
    @inlinable package mutating func readStringToken() throws(Failure) -> JSONStringToken {
        try expect(UInt8(ascii: "\""))
        return try stringToken()
    }

    /// Continues behind the opening quote.
    @inlinable mutating func stringToken() throws(Failure) -> JSONStringToken {
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
                return JSONStringToken(range: Range(uncheckedBounds: (start, index)), hasEscapes: hasEscapes)
            }
            // The byte after a backslash cannot end the string.
            hasEscapes = true
            index &+= 2
        }
    }

    @inlinable package mutating func readString() throws(Failure) -> String {
        try string(try readStringToken())
    }

    /// The string of a token.
    @inline(__always)
    @inlinable package func string(_ token: JSONStringToken) throws(Failure) -> String {
        guard let string = token.hasEscapes ? try escapedString(token) : decoded(content(token)) else {
            throw failure(.invalidUTF8, at: token.range.lowerBound)
        }
        return string
    }

    @inline(never)
    @inlinable func escapedString(_ token: JSONStringToken) throws(Failure) -> String? {
        try unescaped(token).withUnsafeBytes { decoded($0) }
    }

    /// Nil when the bytes are not UTF-8.
    @inline(__always)
    @inlinable func decoded(_ utf8: UnsafeRawBufferPointer) -> String? {
        // `String(validating:)` is generic code of the standard library and slow: values whose strings are mostly ASCII
        // took 1.5 times as long with it alone.
        if isUTF8 || JSONScanner.isASCII(utf8) { return String(decoding: utf8, as: UTF8.self) }
        return String(validating: utf8.assumingMemoryBound(to: UInt8.self), as: UTF8.self)
    }

    /// The bytes of a token's content, with its escapes.
    @inline(__always)
    @inlinable package func content(_ token: JSONStringToken) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[token.range])
    }

    /// The bytes of a string that has escapes.
    @inline(never)
    @inlinable package func unescaped(_ token: JSONStringToken) throws(Failure) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(token.range.count)
        let content = UnsafeRawBufferPointer(rebasing: bytes[..<token.range.upperBound])
        var index = token.range.lowerBound
        while true {
            let special = JSONScanner.firstSpecial(content, from: index)
            result.append(contentsOf: content[index..<special])
            if special == content.count { return result }
            index = special &+ 1
            do throws(JSONError) {
                JSONTokens.append(try JSONEscape.read(content, &index), to: &result)
            } catch {
                throw Failure(json: error)
            }
        }
    }
}
