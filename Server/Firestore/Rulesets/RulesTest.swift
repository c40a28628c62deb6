import HearthConcurrency
import HearthHost
import HearthModel
import HearthRules
import HearthWire

/// A test of rules over the API: a source is compiled, and judges the cases of a suite.
struct RulesTest {
    private let source: RulesetSource
    private let cases: [Value]

    /// - Parameter stored: the source of the tested ruleset; nil when the request has the source.
    /// - Throws: INVALID_ARGUMENT that names what is wrong in the request.
    init(body: [UInt8], stored: RulesetSource?) throws(Status) {
        let object = try RequestObject(body: body, known: ["source", "testSuite"])
        let given = try object.object("source", known: RulesetSource.members)
        switch (stored, given) {
        case (let stored?, nil): source = stored
        case (nil, let given?): source = try RulesetSource(given)
        case (nil, nil): throw .invalidArgument("The request has no source.")
        case (_?, _?): throw .invalidArgument("A test of a ruleset has no source.")
        }
        let suite = try object.object("testSuite", known: ["testCases"])
        cases = try suite?.list("testCases") ?? []
        if cases.count > Limits.rulesTestCasesMax {
            throw .invalidArgument(
                "A test has at most \(Limits.rulesTestCasesMax) cases; this one has \(cases.count).")
        }
    }

    /// - Parameter giveWay: called between cases.
    /// - Returns: the body of the answer. Errors in the source are not errors of the request.
    /// - Throws: INVALID_ARGUMENT for a case that isn't understood; DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED beyond the bounds of a
    ///   test.
    func run(giveWay: () throws(Status) -> Void) throws(Status) -> [UInt8] {
        let compilation = Ruleset.compile(source.content)
        var writer = JSONWriter()
        writer.raw("{\"issues\":[")
        for (index, issue) in compilation.issues.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.raw("{\"sourcePosition\":")
            append(issue.line, issue.column, to: &writer)
            writer.raw(",\"description\":")
            writer.string(issue.description)
            writer.raw(",\"severity\":\"\(issue.severity.rawValue)\"}")
        }
        writer.raw("],\"testResults\":[")
        if let ruleset = compilation.ruleset {
            let end = MonotonicTime.now.nanoseconds + Int64(Limits.rulesTestSecondsMax) * 1_000_000_000
            // All are read before the first is judged.
            let cases = try RulesCase.cases(cases, ofService: true)
            for (index, test) in cases.enumerated() {
                if MonotonicTime.now.nanoseconds > end {
                    throw Status(
                        .deadlineExceeded,
                        "The test took longer than \(Limits.rulesTestSecondsMax) seconds; \(index) cases are judged.")
                }
                if writer.bytes.count > Limits.rulesTestAnswerBytesMax {
                    throw .resourceExhausted(
                        "The results have more than \(Limits.rulesTestAnswerBytesMax >> 20) MiB; test fewer cases at once."
                    )
                }
                if index > 0 { writer.raw(",") }
                try judge(test, ruleset, to: &writer)
                try giveWay()
            }
        }
        writer.raw("]}")
        return writer.bytes
    }

    private func append(_ line: Int, _ column: Int, to writer: inout JSONWriter) {
        writer.raw("{\"fileName\":")
        writer.string(source.fileName)
        // Firebase's tools print both, also where an issue concerns the whole source.
        writer.raw(",\"line\":\(line),\"column\":\(column)}")
    }

    private func judge(_ test: RulesCase, _ ruleset: Ruleset, to writer: inout JSONWriter) throws(Status) {
        let visits = RulesVisits(ruleset, level: test.reportLevel)
        let outcome = try test.run(ruleset, observer: visits)
        let isExpected = outcome.isAllowed == test.expectsAllow
        writer.raw("{\"state\":\"\(isExpected ? "SUCCESS" : "FAILURE")\"")
        let failure = outcome.isAllowed ? nil : outcome.outcomes.first { $0.result == .failed }
        // A denial because of an error may be what a case expects, and is worth a word all the same.
        if !isExpected || failure != nil {
            writer.raw(",\"debugMessages\":[")
            for (index, message) in outcome.messages.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.string(message)
            }
            writer.raw("]")
        }
        if let failure {
            writer.raw(",\"errorPosition\":")
            append(failure.conditionLine, failure.conditionColumn, to: &writer)
        }
        append(outcome.calls, to: &writer)
        visits.append(to: &writer) { line, column, writer in append(line, column, to: &writer) }
        writer.raw("}")
    }

    private func append(_ calls: [RulesCase.Call], to writer: inout JSONWriter) {
        if calls.isEmpty { return }
        writer.raw(",\"functionCalls\":[")
        for (index, call) in calls.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.raw("{\"function\":")
            writer.string(call.function)
            writer.raw(",\"args\":[")
            writer.string(call.path)
            writer.raw("]}")
        }
        writer.raw("]")
    }
}
