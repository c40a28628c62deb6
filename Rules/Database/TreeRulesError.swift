/// Why rules of the Realtime Database are refused, and where.
public struct TreeRulesError: Error, Sendable, Equatable, CustomStringConvertible {
    /// From 1.
    public var line: Int
    /// From 1; in characters.
    public var column: Int
    /// The service's own words where they are known.
    public var message: String

    /// As a deployment is told: `3:14: Unknown variable 'foo'.`
    public var description: String { "\(line):\(column): \(message)" }
}

/// An error whose place is an offset yet.
struct TreeSyntaxError: Error {
    /// In bytes, in whatever text is being read: the document, or an expression.
    var offset: Int
    var message: String

    init(_ message: String, at offset: Int) {
        self.offset = offset
        self.message = message
    }
}
