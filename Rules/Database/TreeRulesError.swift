/// The reason why rules of the Realtime Database are rejected, and the location of the error.
package struct TreeRulesError: Error, Sendable, Equatable, CustomStringConvertible {
    /// From 1.
    package var line: Int
    /// From 1; in characters.
    package var column: Int
    /// The service's own wording where it is known.
    package var message: String

    /// The form that a deployment reports: `3:14: Unknown variable 'foo'.`
    package var description: String { "\(line):\(column): \(message)" }
}

/// An error with an offset instead of a line and a column.
package struct TreeSyntaxError: Error {
    /// In bytes, within the document or the expression that is being read.
    var offset: Int
    var message: String

    init(_ message: String, at offset: Int) {
        self.offset = offset
        self.message = message
    }
}
