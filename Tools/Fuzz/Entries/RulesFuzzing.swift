import HearthRules
import HearthModel

/// Entry points for fuzzing rules: any bytes compile or are rejected with a reason; compiled rules are printed as
/// source with the same meaning, and evaluation ends. A violated invariant traps, which the fuzzer detects.
package enum RulesFuzzing {
    /// Uses the bytes as a source, an expression, and a pattern.
    package static func fuzz(_ bytes: [UInt8]) {
        let string = String(decoding: bytes, as: UTF8.self)
        compile(string)
        compile(
            "rules_version = '2'; service cloud.firestore { match /databases/{db}/documents { match /c/{d=**} { "
                + "allow read, write: if \(string); } } }")
        fuzzPattern(string)
    }

    private static func compile(_ source: String) {
        checkPrinting(source)
        let compilation = Ruleset.compile(source)
        guard let ruleset = compilation.ruleset else {
            precondition(
                compilation.issues.contains { $0.severity == .error }, "a source is refused without a reason")
            return
        }
        precondition(!compilation.issues.contains { $0.severity == .error }, "a source with errors compiles")
        for request in requests { judge(ruleset, request) }
    }

    private static func checkPrinting(_ source: String) {
        let bytes = Array(source.utf8)
        guard bytes.count < RulesLimits.sourceSizeBytesMax else { return }
        let (file, issues) = Parser.parse(bytes)
        if issues.hasErrors { return }
        let printed = Printer.print(file)
        let (again, found) = Parser.parse(Array(printed.utf8))
        precondition(!found.hasErrors, "a printed source is refused: \(printed)")
        precondition(again == file, "a printed source means something else: \(printed)")
    }

    private static func judge(_ ruleset: Ruleset, _ request: RulesRequest) {
        let reader = Reader()
        let verdict = ruleset.decide(request, reader, RulesAccess(total: 10))
        _ = verdict.message
        precondition(reader.count <= 10, "more documents were read than allowed")
        // An observer does not change the result.
        let coverage = RulesCoverage(ruleset)
        let explanation = RulesExplanation(ruleset)
        let watched = ruleset.decide(request, Reader(), RulesAccess(total: 10), observer: coverage)
        let explained = ruleset.decide(request, Reader(), RulesAccess(total: 10), observer: explanation)
        precondition(
            watched.isAllowed == verdict.isAllowed && explained.message == verdict.message,
            "an observer changes the verdict")
        _ = coverage.string
        _ = coverage.json()
        _ = explanation.string
    }

    private static func fuzzPattern(_ pattern: String) {
        guard let expression = RegularExpression(pattern, isLiteral: false) else { return }
        _ = expression.matches("aab\u{e9}\u{1F600}")
        _ = expression.split("a,b,\u{e9},\u{1F600}")
        _ = expression.replacing(in: "a,b,\u{e9}", with: "$0\\$1")
    }

    // MARK: Requests

    private final class Reader: DocumentReader {
        var count = 0

        func document(_ path: ResourcePath, isAfter: Bool) throws(Status) -> RulesDocument? {
            count += 1
            return path.segments.count == 2 ? RulesDocument(path: path, fields: RulesFuzzing.fields) : nil
        }
    }

    private static let fields = MapValue([
        MapValue.Field(name: "a", value: .integer(1)), MapValue.Field(name: "b", value: .string("text")),
        MapValue.Field(name: "c", value: .array([.double(1), .null, .map(MapValue())])),
        MapValue.Field(name: "d", value: .map(MapValue([MapValue.Field(name: "e", value: .boolean(true))]))),
        MapValue.Field(name: "t", value: .timestamp(Timestamp(microseconds: 0))),
    ])

    private static var requests: [RulesRequest] {
        let path = ResourcePath(["c", "d"])
        let document = RulesDocument(path: path, fields: fields)
        let time = Timestamp(microseconds: 1_600_000_000_000_000)
        let query = RulesQuery(
            collectionID: "c", limit: 3, orderBy: [(FieldPath("a"), true)],
            branches: [
                [
                    RulesQuery.Constraint(FieldPath("a"), .greaterThan, .integer(3)),
                    RulesQuery.Constraint(FieldPath("b"), .equal, .string("text")),
                    RulesQuery.Constraint(FieldPath("c"), .arrayContainsAny, .array([.integer(1), .null])),
                ]
            ])
        let auth = RulesAuth(uid: "u", token: fields)
        return [
            RulesRequest(method: .get, path: path, auth: auth, time: time, resource: document),
            RulesRequest(
                method: .update, path: path, auth: auth, time: time, resource: document, newResource: document),
            RulesRequest(method: .create, path: path, time: time, newResource: document),
            RulesRequest(method: .list, path: ResourcePath(["c"]), auth: auth, time: time, query: query),
        ]
    }
}
