/// Why rules of the Realtime Database are refused, and where.
package struct TreeRulesError: Error, Sendable, Equatable, CustomStringConvertible {
    /// From 1.
    package var line: Int
    /// From 1; in characters.
    package var column: Int
    /// The service's own words where they are known.
    package var message: String

    /// As a deployment is told: `3:14: Unknown variable 'foo'.`
    package var description: String { "\(line):\(column): \(message)" }
}

/// An error whose place is an offset yet.
package struct TreeSyntaxError: Error {
    /// In bytes, in whatever text is being read: the document, or an expression.
    var offset: Int
    var message: String

    init(_ message: String, at offset: Int) {
        self.offset = offset
        self.message = message
    }
}
