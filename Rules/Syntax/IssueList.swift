/// The errors and warnings of a source, collected during parsing and compilation.
package struct IssueList {
    struct Entry {
        var range: SourceRange?
        var description: String
        var severity: RulesIssue.Severity
        var hint: String?
    }

    private(set) var entries: [Entry] = []
    package private(set) var hasErrors = false

    mutating func error(_ description: String, at range: SourceRange?, hint: String? = nil) {
        hasErrors = true
        append(Entry(range: range, description: description, severity: .error, hint: hint))
    }

    mutating func warning(_ description: String, at range: SourceRange?, hint: String? = nil) {
        append(Entry(range: range, description: description, severity: .warning, hint: hint))
    }

    private mutating func append(_ entry: Entry) {
        guard entries.count < RulesLimits.issuesMax || (entry.severity == .error && !hasReportedError) else { return }
        if entry.severity == .error { hasReportedError = true }
        entries.append(entry)
    }

    /// With any number of warnings, at least one error is reported.
    private var hasReportedError = false

    /// The issues in the order of the source.
    func issues(_ lines: LineIndex) -> [RulesIssue] {
        let placed = entries.enumerated().map { (index: $0.offset, entry: $0.element) }
        let sorted = placed.sorted { left, right in
            let (first, second) = (left.entry.range?.start ?? -1, right.entry.range?.start ?? -1)
            return first != second ? first < second : left.index < right.index
        }
        return sorted.map { _, entry in
            let (line, column) = entry.range.map { lines.position($0.start) } ?? (0, 0)
            return RulesIssue(
                line: line, column: column, description: entry.description, severity: entry.severity, hint: entry.hint)
        }
    }
}
