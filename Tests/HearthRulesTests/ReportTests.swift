import HearthModel
import Testing

@testable import HearthRules

@Suite struct ReportTests {
    private let source = service("match /c/{d} { allow get: if d == 'x' || request.auth.uid == 'bob'; }")

    @Test func coverageCountsValuesByExpression() throws {
        let ruleset = try compiled(source)
        let coverage = RulesCoverage(ruleset)
        for path in ["c/x", "c/y", "c/z"] {
            _ = ruleset.decide(request(.get, path), FixedReader(), RulesAccess(total: 10), observer: coverage)
        }
        let whole = try #require(ruleset.expressions.first { $0.parent == nil })
        #expect(
            coverage.counts(of: whole.id) == [
                RulesCoverage.Count(value: "true", isError: false, count: 1),
                RulesCoverage.Count(value: "false", isError: false, count: 2),
            ])
        let uid = try #require(
            ruleset.expressions.last { $0.parent != nil && coverage.counts(of: $0.id).first?.value == "'bob'" })
        #expect(coverage.evaluations(of: uid.id) == 2)
        #expect(coverage.string.contains("11 of 11") || coverage.string.contains("expressions evaluated"))
        #expect(coverage.string.contains("3:30  true ×1, false ×2  d == 'x' || request.auth.uid == 'bob'"))
    }

    @Test func coverageListsExpressionsThatWereNeverEvaluated() throws {
        let ruleset = try compiled(source)
        let coverage = RulesCoverage(ruleset)
        _ = ruleset.decide(request(.get, "c/x"), FixedReader(), RulesAccess(total: 10), observer: coverage)
        #expect(coverage.string.contains("3:42  never  request.auth.uid == 'bob'"))
        #expect(!coverage.string.contains("never  request.auth.uid\n"))
    }

    @Test func coverageIsWrittenInTheEmulatorsForm() throws {
        let ruleset = try compiled("service cloud.firestore { match /a/{b} { allow get: if !true; } }")
        let coverage = RulesCoverage(ruleset)
        #expect(!coverage.json().contains("values"))
        _ = ruleset.decide(
            RulesRequest(method: .get, path: path("x/y"), time: requestTime), FixedReader(), RulesAccess(total: 10),
            observer: coverage)
        #expect(
            coverage.json(fileName: "r") == """
                {"rules":{"files":[{"name":"r","content":"service cloud.firestore { match /a/{b} { allow get: if !true; } }"}]},\
                "report":[{"sourcePosition":{"fileName":"r","line":1,"column":56,"currentOffset":55,"endOffset":59},\
                "children":[{"sourcePosition":{"fileName":"r","line":1,"column":57,"currentOffset":56,"endOffset":59}}]}]}
                """)
        let other = try compiled(service("match /c/{d} { allow get: if !true; }"))
        let reached = RulesCoverage(other)
        _ = other.decide(request(.get, "c/d"), FixedReader(), RulesAccess(total: 10), observer: reached)
        #expect(reached.json().contains("\"values\":[{\"value\":{\"boolValue\":false},\"count\":1}]"))
    }

    @Test func explanationsShowTheTree() throws {
        let ruleset = try compiled(source)
        let explanation = RulesExplanation(ruleset)
        _ = ruleset.decide(
            request(.get, "c/y", auth: nil), FixedReader(), RulesAccess(total: 10), observer: explanation)
        #expect(
            explanation.string == """
                allow get at 3:16
                  d == 'x' || request.auth.uid == 'bob'  → error: Null value error.
                    d == 'x'  → false
                      d  → 'y'
                      'x'  → 'x'
                    request.auth.uid == 'bob'  → error: Null value error.
                      request.auth.uid  → error: Null value error.
                        request.auth  → null
                          request  → {'auth': null, 'method': 'get', 'path': /databases/(default)/documents/c/y, 'time': \
                timestamp.value(1709209845123)}
                      'bob'  → 'bob'
                failed: Null value error. for 'get' @ L3

                """)
    }

    @Test func debugNotifiesTheObserver() throws {
        final class Listener: RulesObserver {
            var strings: [String] = []
            func didEvaluate(_ expression: RulesExpression, _ result: RulesResult) {}
            func didDebug(_ string: String, at line: Int) { strings.append("\(line): \(string)") }
        }
        let ruleset = try compiled(service("match /c/{d} { allow get: if debug(1 + 1) == 2 && debug('a') == 'a'; }"))
        let listener = Listener()
        #expect(
            ruleset.decide(request(.get, "c/d"), FixedReader(), RulesAccess(total: 10), observer: listener).isAllowed)
        #expect(listener.strings == ["3: int_value: 2", "3: string_value: 'a'"])
    }
}
