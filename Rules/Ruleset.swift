import HearthModel

/// Security Rules of Cloud Firestore: a source is compiled once and then decides on operations, from any thread.
///
/// `compile` parses the source (`Syntax`), checks it and resolves its names (`Checks`, `Program`). `decide` finds the
/// match blocks for an operation's path (`Judge`) and evaluates their `allow` statements in the order of the source
/// until one grants. The result of an expression is a value or an error (`RuleValue`). An error propagates like a
/// value; only `&&`, `||` and the end of a statement absorb it. The decision on a list depends on what its query
/// requires of every result (`RuleConstraint`), never on the results.
///
/// Nothing here blocks, allocates without a bound, or keeps state between two decisions except in `RulesAccess`.
/// Source: the Security Rules reference and guides of the Firebase documentation.
package final class Ruleset: Sendable {
    package let source: String
    /// The location of each expression.
    package let expressions: [RulesExpression]
    let program: Program
    /// Whether the source has a part for Firestore, `service cloud.firestore`.
    package let hasFirestore: Bool

    private init(source: String, expressions: [RulesExpression], program: Program, hasFirestore: Bool) {
        self.source = source
        self.hasFirestore = hasFirestore
        self.expressions = expressions
        self.program = program
    }

    /// Compiles a source. A source with errors has no ruleset; one with warnings has.
    package static func compile(_ source: String) -> RulesCompilation {
        let bytes = Array(source.utf8)
        let lines = LineIndex(bytes)
        if bytes.count >= RulesLimits.sourceSizeBytesMax {
            var issues = IssueList()
            issues.error(
                "Rules content is too large: \(bytes.count) bytes of at most \(RulesLimits.sourceSizeBytesMax - 1).",
                at: nil)
            return RulesCompilation(ruleset: nil, issues: issues.issues(lines))
        }
        let (file, found) = Parser.parse(bytes)
        if found.hasErrors { return RulesCompilation(ruleset: nil, issues: found.issues(lines)) }
        var compiler = Compiler(file, lines: lines, issues: found)
        let program = compiler.compile()
        let issues = compiler.issues.issues(lines)
        if compiler.issues.hasErrors { return RulesCompilation(ruleset: nil, issues: issues) }
        let ruleset = Ruleset(
            source: source, expressions: compiler.expressions, program: program,
            hasFirestore: file.services.contains { $0.name == Compiler.service })
        return RulesCompilation(ruleset: ruleset, issues: issues)
    }

    /// Decides on one operation.
    /// - Parameters:
    ///   - reader: reads the documents that rules need; rules do not apply to these reads.
    ///   - access: the documents of the whole request, which may consist of several operations.
    ///   - observer: is notified of each expression; nil costs nothing.
    package func decide(
        _ request: RulesRequest, _ reader: any DocumentReader, _ access: RulesAccess,
        observer: (any RulesObserver)? = nil
    ) -> RulesVerdict {
        access.begin()
        if request.method == .list { return decideList(request, reader, access, observer) }
        let evaluation = Evaluation(self, request, reader, access, observer)
        var judge = Judge(evaluation, target: .document)
        judge.run(program)
        return judge.verdict
    }

    /// A query is allowed when each of its branches is allowed.
    private func decideList(
        _ request: RulesRequest, _ reader: any DocumentReader, _ access: RulesAccess,
        _ observer: (any RulesObserver)?
    ) -> RulesVerdict {
        let query = request.query ?? RulesQuery(collectionID: request.path.segments.last ?? "")
        guard let branches = QueryBranch.branches(of: query) else {
            return RulesVerdict(isAllowed: false, outcomes: [], failure: nil)
        }
        var verdict = RulesVerdict(isAllowed: false, outcomes: [], failure: nil)
        for branch in branches {
            let evaluation = Evaluation(self, request, reader, access, observer)
            let target = branch.prepare(evaluation, query)
            var judge = Judge(evaluation, target: target)
            judge.run(program)
            let own = judge.verdict
            verdict = RulesVerdict(
                isAllowed: own.isAllowed, outcomes: verdict.outcomes + own.outcomes, failure: own.failure)
            if !own.isAllowed { break }
        }
        return verdict
    }
}
