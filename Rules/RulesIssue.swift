/// What a compilation found wrong, with the text that Google's compiler writes.
public struct RulesIssue: Sendable, Equatable {
    public enum Severity: String, Sendable {
        /// The ruleset is refused.
        case error = "ERROR"
        case warning = "WARNING"
    }

    /// From 1; 0 when the issue is of the whole source.
    public var line: Int
    /// From 1; 0 when the issue is of the whole source.
    public var column: Int
    public var description: String
    public var severity: Severity
    /// What would be right, in our own words.
    public var hint: String?

    public init(line: Int, column: Int, description: String, severity: Severity, hint: String? = nil) {
        self.line = line
        self.column = column
        self.description = description
        self.severity = severity
        self.hint = hint
    }
}

/// The outcome of a compilation.
public struct RulesCompilation: Sendable {
    /// Nil when there is an error.
    public let ruleset: Ruleset?
    /// In the order of the source.
    public let issues: [RulesIssue]
}
