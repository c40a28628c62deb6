import HearthModel
import Testing

@testable import HearthRules

/// Tables of expressions: `allow | expression`, `deny | expression` for false, `error | expression => string`.
@Suite struct ExpressionCaseTests {
    /// The document that the expressions of the tables read.
    static let document = map(
        ("owner", .string("alice")), ("n", .integer(5)), ("f", .double(2)), ("flag", .boolean(true)), ("z", .null),
        ("y", .bytes(Array("hi".utf8))), ("t", .timestamp(requestTime)),
        ("g", .geoPoint(GeoPoint(latitude: 10, longitude: 20))),
        ("r", .reference("projects/p/databases/(default)/documents/c/e")),
        ("l", .array([.integer(1), .integer(2), .integer(3)])),
        ("m", .map(map(("a", .integer(2)), ("b", .integer(1))))), ("v", .vector([1, 2])))

    struct Case: Sendable {
        var number: Int
        var verdict: String
        var expression: String
        var error: String?
    }

    static func cases(_ file: String) throws -> [Case] {
        try CaseFile.lines(file).compactMap { line in
            if line.string.isEmpty || line.string.hasPrefix("#") { return nil }
            let parts = line.string.split(separator: " | ", maxSplits: 1).map(String.init)
            guard parts.count == 2, ["allow", "deny", "error"].contains(parts[0]) else {
                Issue.record("\(file):\(line.number): no case: \(line.string)")
                return nil
            }
            guard parts[0] == "error" else {
                return Case(number: line.number, verdict: parts[0], expression: parts[1])
            }
            let halves = parts[1].split(separator: " => ", maxSplits: 1).map(String.init)
            return Case(
                number: line.number, verdict: parts[0], expression: halves[0],
                error: halves.count > 1 ? halves[1].replacing("\\n", with: "\n") : nil)
        }
    }

    @Test(arguments: [("operators.txt", 260), ("access.txt", 180), ("methods.txt", 360), ("choices.txt", 24)])
    func expressionsHaveTheResultsOfTheTable(file: String, countMinimum: Int) throws {
        let cases = try Self.cases(file)
        #expect(cases.count >= countMinimum)
        for test in cases {
            let compilation = Ruleset.compile(service("match /c/{d} { allow get: if \(test.expression); }"))
            let errors = compilation.issues.filter { $0.severity == .error }.map(\.description)
            guard let ruleset = compilation.ruleset else {
                Issue.record("\(file):\(test.number): \(test.expression): \(errors)")
                continue
            }
            let verdict = ruleset.decide(
                request(.get, "c/d", resource: Self.document), ["c/d": Self.document, "c/e": map(("k", .integer(1)))])
            let outcome = verdict.outcomes.last
            let got =
                switch outcome?.result {
                case .allowed: "allow"
                case .denied: "deny"
                case .failed: "error"
                case nil: "nothing"
                }
            #expect(got == test.verdict, "\(file):\(test.number): \(test.expression): \(verdict.message)")
            if let error = test.error, got == "error" {
                #expect(
                    outcome?.string == "\(error) for 'get' @ L3", "\(file):\(test.number): \(test.expression)")
            }
        }
    }
}
