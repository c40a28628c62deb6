/// An error or warning of a compilation, with the message of Google's compiler.
package struct RulesIssue: Sendable, Equatable {
    package enum Severity: String, Sendable {
        /// The ruleset is rejected.
        case error = "ERROR"
        case warning = "WARNING"
    }

    /// From 1; 0 when the issue concerns the whole source.
    package var line: Int
    /// From 1; 0 when the issue concerns the whole source.
    package var column: Int
    package var description: String
    package var severity: Severity
    /// A suggestion, in our own words.
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
