import HearthToolSupport
import Glibc
import HearthModel
import HearthRules
import HearthHost
import HearthFirestoreServer

/// `hearth rules`
enum RulesCommand {
    static let command = ToolCommand(
        name: "rules", summary: "Check and test security rules.", options: options,
        verbs: ["check", "test", "explain"], help: { help() },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options = [
        Option("coverage", "FILE", "Write which expressions the cases reached: as lines, or as a page for FILE.html.")
    ]

    private static func help() -> String {
        """
        Usage: hearth rules check FILE
               hearth rules test FILE CASES [options]
               hearth rules explain FILE CASES

        check    compiles the rules and prints what is wrong with them. A FILE that begins with a brace has rules of the
                 Realtime Database, in their JSON; only this command takes them.
        test     judges the cases of a JSON file, in the shape of the Rules test API, and compares with what they expect.
        explain  judges them and prints each expression with its value.

        A case is {"expectation": "ALLOW", "request": {"auth": {"uid": "alice", "token": {}}, "method": "get",
        "path": "/databases/(default)/documents/users/alice"}, "resource": {"data": {}}, "functionMocks": []}. Besides,
        "documents" may give what is stored elsewhere, by path, and "writes" a batch: [{"path": "…", "data": {}}].

        \(OptionHelp.string(options))

        Exit codes: 0 all is well, 1 a case came out otherwise, 64 wrong usage, 78 the rules or the cases can't be read.
        """
    }

    private static func run(_ words: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(words, options: options, argumentsMax: 3)
        switch (parsed.arguments.first, parsed.arguments.count) {
        case ("check", 2): try check(parsed.arguments[1])
        case ("test", 3): try test(parsed.arguments[1], parsed.arguments[2], coverage: parsed.string("coverage"))
        case ("explain", 3): try explain(parsed.arguments[1], parsed.arguments[2])
        default: throw .usage("Expected `hearth rules check FILE`, `test FILE CASES` or `explain FILE CASES`.")
        }
    }

    private static func read(_ path: String) throws(ToolFailure) -> [UInt8] {
        do throws(Status) {
            return try IdentityConfiguration.bytes(path)
        } catch {
            throw .configuration(error.message)
        }
    }

    private static func check(_ path: String) throws(ToolFailure) {
        let string = try read(path)
        guard TreeRuleset.isDocument(string) else {
            _ = try compile(path, printsWarnings: true)
            return
        }
        do throws(TreeRulesError) {
            _ = try TreeRuleset.compile(string)
        } catch {
            Output.line("\(path):\(error.line):\(error.column): error: \(error.message)")
            throw .configuration("\(path): 1 error.")
        }
    }

    private static func compile(_ path: String, printsWarnings: Bool) throws(ToolFailure) -> Ruleset {
        let bytes = try read(path)
        if TreeRuleset.isDocument(bytes) {
            throw .configuration("\(path) has rules of the Realtime Database, which are only checked.")
        }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw .configuration("\(path) is not valid UTF-8.")
        }
        let compilation = Ruleset.compile(string)
        let ofLists = printsWarnings ? Ruleset.listWarnings(string) : []
        for issue in compilation.issues + ofLists where printsWarnings || issue.severity == .error {
            let hint = issue.hint.map { " (\($0))" } ?? ""
            let kind = issue.severity == .error ? "error" : "warning"
            Output.line("\(path):\(issue.line):\(issue.column): \(kind): \(issue.description)\(hint)")
        }
        guard let ruleset = compilation.ruleset else {
            let count = compilation.issues.count { $0.severity == .error }
            throw .configuration("\(path): \(count) \(count == 1 ? "error" : "errors").")
        }
        return ruleset
    }

    static func cases(_ path: String) throws(ToolFailure) -> [RulesCase] {
        do throws(Status) {
            return try RulesCase.parse(Array(TextFile.withoutMark(try IdentityConfiguration.bytes(path)[...])))
        } catch {
            throw .configuration("\(path): \(error.message)")
        }
    }

    private static func test(_ file: String, _ casesFile: String, coverage path: String?) throws(ToolFailure) {
        let ruleset = try compile(file, printsWarnings: false)
        let coverage = RulesCoverage(ruleset)
        let cases = try cases(casesFile)
        var failures = 0
        for test in cases {
            let outcome = try judge(test, ruleset, coverage)
            if outcome.isAllowed == test.expectsAllow { continue }
            failures += 1
            Output.line("\(test.name): expected \(test.expectsAllow ? "ALLOW" : "DENY")")
            for message in outcome.messages { Output.line("    " + message) }
        }
        if let path {
            try OutputFile.write(path.hasSuffix(".html") ? RulesCoveragePage.html(coverage) : coverage.string, to: path)
        }
        Output.line("\(cases.count - failures) of \(cases.count) cases as expected.")
        if failures > 0 {
            throw ToolFailure(.failed, "\(failures) \(failures == 1 ? "case" : "cases") came out otherwise.")
        }
    }

    private static func judge(
        _ test: RulesCase, _ ruleset: Ruleset, _ observer: any RulesObserver
    ) throws(ToolFailure) -> RulesCase.Outcome {
        do throws(Status) {
            return try test.run(ruleset, observer: observer)
        } catch {
            throw ToolFailure(.software, "\(test.name): \(error.message)")
        }
    }

    private static func explain(_ file: String, _ casesFile: String) throws(ToolFailure) {
        let ruleset = try compile(file, printsWarnings: false)
        for test in try cases(casesFile) {
            let explanation = RulesExplanation(ruleset)
            let outcome = try judge(test, ruleset, explanation)
            Output.line("\(test.name): \(outcome.isAllowed ? "ALLOW" : "DENY")")
            Output.string(explanation.string)
        }
    }
}
