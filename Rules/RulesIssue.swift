/// What a compilation found wrong, with the text that Google's compiler writes.
package struct RulesIssue: Sendable, Equatable {
    package enum Severity: String, Sendable {
        /// The ruleset is refused.
        case error = "ERROR"
        case warning = "WARNING"
    }

    /// From 1; 0 when the issue is of the whole source.
    package var line: Int
    /// From 1; 0 when the issue is of the whole source.
    package var column: Int
    package var description: String
    package var severity: Severity
    /// What would be right, in our own words.
    package var hint: String?

    package init(line: Int, column: Int, description: String, severity: Severity, hint: String? = nil) {
        self.line = line
        self.column = column
        self.description = description
        self.severity = severity
        self.hint = hint
    }
}

/// The outcome of a compilation.
package struct RulesCompilation: Sendable {
    /// Nil when there is an error.
    package let ruleset: Ruleset?
    /// In the order of the source.
    package let issues: [RulesIssue]
}
