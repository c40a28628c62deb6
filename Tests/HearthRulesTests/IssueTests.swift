import HearthTestSupport
import Testing

@testable import HearthRules

@Suite struct IssueTests {
    @Test func sourcesHaveTheIssuesOfTheTable() throws {
        var count = 0
        for line in try CaseFile.lines("issues.txt") where !line.string.isEmpty && !line.string.hasPrefix("#") {
            let halves = line.string.components(" => ")
            try #require(halves.count == 2, "issues.txt:\(line.number)")
            count += 1
            let source = halves[0].replacing("\\n", with: "\n")
            let found = Ruleset.compile(source).issues.map {
                "\($0.severity == .error ? "E" : "W") \($0.line):\($0.column) \($0.description)"
            }
            #expect(found.joined(separator: " ;; ") == halves[1], "issues.txt:\(line.number)")
        }
        #expect(count > 130)
    }

    @Test func conditionsHaveTheWarningsOfTheTable() throws {
        var count = 0
        for line in try CaseFile.lines("warnings.txt") where !line.string.isEmpty && !line.string.hasPrefix("#") {
            let halves = line.string.components(" => ")
            try #require(halves.count == 2, "warnings.txt:\(line.number)")
            count += 1
            let head = "match /c/{d} { allow get: if "
            let found = Ruleset.compile(service(head + halves[0] + "; }")).issues.map {
                "\($0.column - head.utf8.count) \($0.description)"
            }
            #expect(found.joined(separator: " ;; ") == halves[1], "warnings.txt:\(line.number)")
        }
        #expect(count > 160)
    }

    @Test func positionsAreThoseOfCharacters() {
        for length in [0, 1, 127, 128, 129, 500] {
            let lines = [String(repeating: "é", count: length), String(repeating: "a€", count: length), ""]
            let source = Array(lines.joined(separator: "\n").utf8)
            let index = LineIndex(source)
            var (line, column) = (1, 1)
            for offset in 0...source.count {
                if offset < source.count, source[offset] & 0xC0 == 0x80 { continue }
                let found = index.position(Int32(offset))
                #expect(found.line == line && found.column == column, "\(length), byte \(offset)")
                column += 1
                if offset < source.count, source[offset] == UInt8(ascii: "\n") { (line, column) = (line + 1, 1) }
            }
        }
    }

    /// Rules on one line took time that grew with the square of their length: minutes, in a debug build.
    @Test func longLinesAreCompiled() {
        let rules = (0..<2200).map { number in
            "match /c\(number)/{d} { allow get: if resource.data.a\(number) == 'x' && request.auth.uid == 'y'; } "
        }
        let source = service(rules.joined())
        let seconds = threadSeconds { #expect(Ruleset.compile(source).ruleset != nil) }
        #expect(seconds < 60)
    }

    @Test func aSourceWithErrorsHasNoRuleset() {
        #expect(Ruleset.compile(service("match /c/{d} { allow get: if 1 +; }")).ruleset == nil)
        let warned = Ruleset.compile(service("match /c/{d} { allow get: if nope; }"))
        #expect(warned.ruleset != nil)
        #expect(warned.issues.map(\.severity) == [.warning])
    }

    @Test func aSourceHasLessThan256KiB() {
        let head = service("match /c/{d} { allow get; }") + "//"
        let padding = RulesLimits.sourceSizeBytesMax - head.utf8.count
        #expect(Ruleset.compile(head + String(repeating: "x", count: padding - 1)).ruleset != nil)
        #expect(Ruleset.compile(head + String(repeating: "x", count: padding)).ruleset == nil)
    }

    @Test func theNumberOfReportedErrorsIsBounded() {
        let found = issues(String(repeating: "x ;\n", count: 1000))
        #expect(found.count <= RulesLimits.issuesMax + 1)
        let warnings = issues(
            service("match /c/{d} { \(String(repeating: "allow x;", count: 1000)) allow get: if (; }"))
        #expect(warnings.contains { $0.hasPrefix("[E]") })
    }

    // MARK: Limits

    private func condition(_ string: String) -> Bool {
        Ruleset.compile(service("match /c/{d} { allow get: if \(string); }")).ruleset != nil
    }

    @Test func expressionsHaveUpTo99Levels() {
        func chain(_ count: Int) -> String { Array(repeating: "1 == 1", count: count).joined(separator: " && ") }
        #expect(condition(chain(98)))
        #expect(!condition(chain(99)))
        func parenthesized(_ count: Int) -> String {
            String(repeating: "(", count: count) + "1 == 1" + String(repeating: ")", count: count)
        }
        #expect(condition(parenthesized(97)))
        #expect(!condition(parenthesized(98)))
        func nested(_ count: Int) -> String {
            String(repeating: "1 == 1 && (", count: count - 1) + "1 == 1" + String(repeating: ")", count: count - 1)
        }
        #expect(condition(nested(49)))
        #expect(!condition(nested(50)))
        #expect(condition("request" + String(repeating: ".a", count: 300) + " == 1"))
        #expect(!condition("request" + String(repeating: ".a", count: 500) + " == 1"))
    }

    @Test(arguments: ["(", "[", "{'a': ", "!", "- ", "f(", "true ? 1 : ", "a[", "/a/$(", "request.a(", "1 == (", "{"])
    func deepNestingIsRefusedWithoutExhaustingTheStack(opening: String) {
        #expect(!condition(String(repeating: opening, count: 100_000 / opening.utf8.count)))
    }

    @Test func matchesNestAtMostTwelveDeep() {
        func nested(_ count: Int) -> String {
            "rules_version = '2'; service cloud.firestore { " + String(repeating: "match /a { ", count: count)
                + "allow get;" + String(repeating: "}", count: count + 1)
        }
        #expect(issues(nested(11)) == [])
        #expect(
            issues(nested(12)).map { $0.drop { $0 != "M" } } == [
                "Maximum allowed resource rule depth of 10 is reached."
            ])
        #expect(!issues(nested(20_000)).isEmpty)
    }

    @Test func pathsHaveUpTo100SegmentsAnd20Captures() {
        func match(_ segments: [String]) -> [String] {
            issues(
                "rules_version = '2';\nservice cloud.firestore {\nmatch /\(segments.joined(separator: "/")) { allow get; } }"
            )
        }
        #expect(match(Array(repeating: "a", count: 100)) == [])
        #expect(
            match(Array(repeating: "a", count: 101)) == ["[E] 3:1 - Maximum allowed path length of 100 is reached."])
        #expect(match((0..<20).map { "{a\($0)}" }) == [])
        #expect(
            match((0..<21).map { "{a\($0)}" })
                == ["[E] 3:1 - Maximum allowed amount of 20 match field variables is reached."])
    }

    @Test func functionsHaveUpTo11Variables() {
        func function(_ count: Int) -> [String] {
            let variables = (0..<count).map { "let a\($0) = \($0 == 0 ? "1" : "a\($0 - 1)");" }.joined(separator: " ")
            return issues(
                service("function f() { \(variables) return a\(count - 1); } match /c/{d} { allow get: if f() == 1; }"))
        }
        #expect(function(11) == [])
        #expect(
            function(12).map { $0.drop { $0 != "M" } } == [
                "Maximum allowed variable count of 10 for a given function has been reached."
            ])
    }

    @Test func chainsOfCallsHaveUpTo21Functions() {
        func chain(_ count: Int) -> [String] {
            let functions = (1..<count).map { "function f\($0)() { return f\($0 + 1)(); }\n" }.joined()
            return issues(
                "rules_version = '2'; service cloud.firestore {\n\(functions)function f\(count)() { return true; } "
                    + "match /a/{b} { allow get: if f1(); } }")
        }
        #expect(chain(21) == [])
        let names = (1...21).map { "f\($0)" }.joined(separator: "->")
        #expect(
            chain(22) == ["[E] 23:10 - Maximum allowed call depth of 20 is reached for [\(names)] call stack."])
        #expect(chain(23).count == 1)
        #expect(!chain(3000).isEmpty)
    }

    @Test func manyFunctionsWithManyCallsAreCheckedFast() {
        // Each function calls all later ones: the number of paths is exponential.
        let functions = (0..<200).map { number in
            let calls = ((number + 1)..<min(number + 20, 200)).map { "f\($0)()" } + ["true"]
            return "function f\(number)() { return \(calls.joined(separator: " && ")); }"
        }
        #expect(!issues(service(functions.joined(separator: "\n") + "match /c/{d} { allow get: if f0(); }")).isEmpty)
    }
}
