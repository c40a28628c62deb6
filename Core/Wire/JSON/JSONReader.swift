import HearthJSON
import HearthModel

/// Reads proto3 JSON token by token, with the errors of Google's front end.
package typealias JSONReader = JSONLexer<Status>

extension JSONReader {
    /// The document is checked once as a whole, so that strings need no check: of a request nearly all bytes are in
    /// strings, and a message that is not UTF-8 is malformed wherever it is not.
    /// - Throws: `INVALID_ARGUMENT` when the document is not valid UTF-8.
    package init(_ bytes: UnsafeRawBufferPointer) throws(Status) {
        guard UTF8String.isValid(bytes) else { throw Status(json: JSONError(.invalidUTF8, at: 0)) }
        // Each level of messages opens at most one container, so the same limit serves both forms.
        self.init(bytes, depthMax: Limits.messageDepthMax, isUTF8: true)
    }
}

extension Status: JSONReadingError {
    @inline(never)
    @usableFromInline package init(json error: JSONError) {
        switch error.reason {
        case .unexpectedToken: self = .invalidJSON("Unexpected token at byte \(error.offset).")
        case .unexpectedEnd: self = .invalidJSON("Unexpected end of the document.")
        case .invalidEscape: self = .invalidJSON("Invalid escape sequence in a string.")
        case .unpairedSurrogate: self = .invalidJSON("A string has a surrogate that is not in a pair.")
        case .invalidUTF8: self = .invalidJSON("The document is not valid UTF-8.")
        case .tooDeep: self = ProtobufReader.tooDeep()
        }
    }

    @inline(never)
    static func invalidJSON(_ reason: String) -> Status {
        .invalidArgument("Invalid JSON payload received. \(reason)")
    }
}
