import HearthModel

/// Security Rules of Cloud Firestore: a source is compiled once and then judges operations, from any thread.
///
/// `compile` parses the source (`Syntax`), checks it and resolves its names (`Checks`, `Program`). `decide` finds the match
/// blocks for an operation's path (`Matching`) and evaluates their `allow` statements in the order of the source until one
/// grants. An expression comes to a value or to an error (`RuleValue`); an error is a value that flows, and only `&&`, `||`
/// and the end of a statement absorb it. A list is judged by what its query demands of every result (`Constraints`), never
/// by the results.
///
/// Nothing here waits, allocates without a bound, or keeps state between two decisions but in `RulesAccess`.
/// Source: the Security Rules reference and guides of the Firebase documentation.
package final class Ruleset: Sendable {
    package let source: String
    /// Where each expression stands.
    package let expressions: [RulesExpression]
    let program: Program

    private init(source: String, expressions: [RulesExpression], program: Program) {
        self.source = source
        self.expressions = expressions
        self.program = program
    }

    /// Compiles a source. An error leaves no ruleset; warnings do.
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
        let ruleset = Ruleset(source: source, expressions: compiler.expressions, program: program)
        return RulesCompilation(ruleset: ruleset, issues: issues)
    }

    /// Judges one operation.
    /// - Parameters:
    ///   - reader: reads the documents that rules ask for, past all rules.
    ///   - access: of the whole request, to which this may be one of several operations.
    ///   - observer: told of each expression; nil costs nothing.
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

    /// A query is allowed when each of its branches is.
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
