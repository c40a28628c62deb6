/// What is wrong with a document, and where.
@usableFromInline package struct JSONError: Error, Hashable, Sendable {
    @usableFromInline package enum Reason: Hashable, Sendable {
        /// Another token, or the end of the document, was expected.
        case unexpectedToken
        case unexpectedEnd
        case invalidEscape
        /// `\u` with half of a character.
        case unpairedSurrogate
        /// A string's bytes are not UTF-8.
        case invalidUTF8
        /// More than `depthMax` open objects and arrays.
        case tooDeep
    }

    @usableFromInline package var reason: Reason
    /// The position of the byte that is wrong; for strings that cannot be decoded, where they begin.
    @usableFromInline package var offset: Int

    @inlinable package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

/// An error that a lexer throws, in the words of the protocol that reads JSON.
@usableFromInline package protocol JSONReadingError: Error {
    init(json error: JSONError)
}
