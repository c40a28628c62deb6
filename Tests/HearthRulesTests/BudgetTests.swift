import HearthModel
import Testing

@testable import HearthRules

@Suite struct BudgetTests {
    private let exhausted =
        "Unable to evaluate the expression as the maximum of 1000 expressions to evaluate has been reached."

    private func verdict(_ condition: String, functions: String = "") throws -> RulesVerdict {
        try compiled(service("\(functions) match /c/{d} { allow get: if \(condition); }")).decide(request(.get, "c/d"))
    }

    /// This many conditions in sequence, none of which grants.
    private func verdict(rules: [String]) throws -> RulesVerdict {
        let statements = rules.map { "allow get: if \($0);" }.joined(separator: "\n")
        return try compiled(service("match /c/{d} { \(statements) }")).decide(request(.get, "c/d"))
    }

    @Test func aListOfLiteralsCostsOneEach() throws {
        func list(_ count: Int) -> String {
            "[\(Array(repeating: "1", count: count).joined(separator: ","))].size() == \(count)"
        }
        #expect(try verdict(list(996)).isAllowed)
        let denied = try verdict(list(997))
        #expect(denied.message == "\n\(exhausted) for 'get' @ L3")
    }

    /// The number of expressions that a condition costs.
    private func cost(_ expression: String, functions: String = "") throws -> Int {
        let ruleset = try compiled(service("\(functions) match /c/{d} { allow get: if \(expression); }"))
        let evaluation = Evaluation(
            ruleset, request(.get, "c/d"), FixedReader(), RulesAccess(total: 10), nil)
        var judge = Judge(evaluation, target: .document)
        judge.run(ruleset.program)
        #expect(judge.verdict.isAllowed)
        return evaluation.spent
    }

    @Test(arguments: [
        ("true", 1), ("!false", 2), ("1 == 1", 3), ("true && true", 4), ("true || false", 2), ("false || true", 4),
        ("1 is int", 3), ("true ? true : false", 4), ("false ? false : true", 6), ("/a/b == /a/b", 7),
        ("/a/$('b') == /a/b", 7), ("[1, 2] == [1, 2]", 7), ("{'a': 1} == {'a': 1}", 7), ("(((true)))", 1),
        ("request.auth != null", 4), ("'a'.size() == 1", 4), ("[1, 2][0] == 1", 7), ("math.abs(1) == 1", 4),
        ("d == d", 3), ("1 in [1]", 4),
    ])
    func nodesHaveTheMeasuredCost(expression: String, expected: Int) throws {
        #expect(try cost(expression) == expected)
    }

    @Test func callsCostTheirArgumentsVariablesAndBody() throws {
        let functions = "function f(a) { return a; } function g() { let x = 1; let y = 2; return x == 1; }"
        #expect(try cost("f(true)", functions: functions) == 3)
        // The call, two variables with a literal each, and the comparison.
        #expect(try cost("g()", functions: functions) == 8)
        #expect(try cost("g() && g()", functions: functions) == 18)
    }

    @Test func theCountCoversAllRulesOfTheRequest() throws {
        // 49 literals, 48 operators and as many right operands, then `&& false` with its parts: 148.
        let rule = "(\(Array(repeating: "true", count: 49).joined(separator: " && "))) && false"
        #expect(try verdict(rules: Array(repeating: rule, count: 6) + ["true"]).isAllowed)
        let denied = try verdict(rules: Array(repeating: rule, count: 7) + ["true"])
        #expect(!denied.isAllowed)
        #expect(denied.outcomes.count == 7)
        #expect(denied.outcomes.last?.string.hasPrefix(exhausted) ?? false)
    }

    @Test func noOperatorAbsorbsTheEndOfTheEvaluation() throws {
        let list = "[\(Array(repeating: "1", count: 1000).joined(separator: ","))].size() == 1"
        #expect(!(try verdict("\(list) || true").isAllowed))
        #expect(!(try verdict("!(\(list)) || true").isAllowed))
        #expect(!(try verdict(rules: [list, "true"]).isAllowed))
    }

    // MARK: Memory and time

    @Test func stringsThatDoubleEndTheEvaluation() throws {
        let doubles = (1..<10).map { "let a\($0) = a\($0 - 1) + a\($0 - 1);" }.joined(separator: " ")
        let functions = "function f(a0) { \(doubles) return a9 + a9; }"
        #expect(!(try verdict("f(f(f('x'))) != 'y'", functions: functions).isAllowed))
        #expect(try verdict("f('x').size() == 1024", functions: functions).isAllowed)
    }

    @Test func exponentialListsEndTheEvaluation() throws {
        let doubles = (1..<10).map { "let a\($0) = [a\($0 - 1), a\($0 - 1)];" }.joined(separator: " ")
        let functions = "function f(a0) { \(doubles) return [a9, a9]; }"
        #expect(!(try verdict("f(f(f(f(1)))) == f(f(f(f(1))))", functions: functions).isAllowed))
        #expect(try verdict("f(1) == f(1)", functions: functions).isAllowed)
        #expect(try verdict("f(f(f(f(1)))) is list", functions: functions).isAllowed)
    }

    @Test func longStringsOfAClientAreReplacedAFewTimesOnly() throws {
        let document = map(("text", .string(String(repeating: "abcdefgh", count: 120_000))))
        func isAllowed(_ count: Int, _ call: String) throws -> Bool {
            let condition = Array(repeating: "resource.data.text.\(call)", count: count).joined(separator: " && ")
            return try compiled(service("match /c/{d} { allow get: if \(condition); }"))
                .decide(request(.get, "c/d", resource: document)).isAllowed
        }
        #expect(try isAllowed(4, "replace('z', '').size() == 960000"))
        #expect(!(try isAllowed(5, "replace('z', '').size() == 960000")))
        #expect(try isAllowed(20, "matches('[a-h]*')"))
        #expect(!(try isAllowed(40, "matches('[a-h]*')")))
    }

    @Test func longListsOfAClientAreComparedByHash() throws {
        let numbers = (0..<50_000).map { Value.integer($0) }
        let document = map(("a", .array(numbers)), ("b", .array(Array(numbers.reversed()))))
        let rules = try compiled(
            service(
                """
                match /c/{d} { allow get: if resource.data.a.hasOnly(resource.data.b) && resource.data.a.hasAll(resource.data.b)
                    && resource.data.a.removeAll(resource.data.b).size() == 0
                    && resource.data.a.toSet().size() == 50000; }
                """))
        #expect(rules.decide(request(.get, "c/d", resource: document)).isAllowed)
    }
}
