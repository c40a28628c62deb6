import HearthModel
import Testing

@testable import HearthRules

/// Tables of whole rulesets, documents and requests. A block ends at an empty line:
///
///     # the behaviour that it shows
///     rule match /c/{d} { allow read; }     (a line of the ruleset; with `version 1` it is of that version)
///     doc c/d {'a': 1}                      (a stored document; `after` for one as it will be)
///     get c/d => allow
///     anon update c/d {'a': 2} => deny: false for 'update' @ L3
///     list c where a > 5, b == 'x' | a == 1 limit 3 => allow
///     group posts under f/y => allow
@Suite struct VerdictCaseTests {
    struct Block {
        var title = ""
        var rules: [String] = []
        var version = "2"
        var reader = FixedReader()
        var checks: [CaseFile.Line] = []
    }

    @Test(arguments: [("matching.txt", 60), ("queries.txt", 70), ("access-calls.txt", 20)])
    func requestsHaveTheVerdictsOfTheTable(file: String, countMinimum: Int) throws {
        var count = 0
        for block in try Self.blocks(file) {
            let source = service(block.rules.joined(separator: "\n"), version: block.version)
            let compilation = Ruleset.compile(source)
            guard let ruleset = compilation.ruleset else {
                let errors = compilation.issues.filter { $0.severity == .error }
                Issue.record("\(file): \(block.title): \(errors)")
                continue
            }
            for check in block.checks {
                count += 1
                try judge(check, ruleset, block.reader, "\(file):\(check.number)")
            }
        }
        #expect(count >= countMinimum)
    }

    private func judge(_ check: CaseFile.Line, _ ruleset: Ruleset, _ reader: FixedReader, _ location: String) throws {
        let halves = check.string.split(separator: " => ", maxSplits: 1).map(String.init)
        try #require(halves.count == 2, "\(location): no case: \(check.string)")
        let request = try Self.request(halves[0], reader)
        let verdict = ruleset.decide(request, reader, RulesAccess(total: 10))
        let expected = halves[1].split(separator: ": ", maxSplits: 1).map(String.init)
        #expect(
            verdict.isAllowed == (expected[0] == "allow"),
            "\(location): \(check.string) (\(verdict.message.trimmed))")
        if expected.count > 1 { #expect(verdict.message.trimmed == expected[1], "\(location)") }
    }

    // MARK: Reading

    static func blocks(_ file: String) throws -> [Block] {
        var blocks: [Block] = []
        var block = Block()
        for line in try CaseFile.lines(file) {
            let words = line.string.split(separator: " ", maxSplits: 2).map(String.init)
            switch words.first {
            case nil:
                if !block.checks.isEmpty { blocks.append(block) }
                block = Block()
            case "#": block.title = line.string
            case "version": block.version = words[1]
            case "rule": block.rules.append(String(line.string.dropFirst(5)))
            case "doc": block.reader.before[path(words[1])] = try fields(words[2])
            case "after": block.reader.after[path(words[1])] = try fields(words[2])
            default: block.checks.append(line)
            }
        }
        if !block.checks.isEmpty { blocks.append(block) }
        return blocks
    }

    private static func request(_ string: String, _ reader: FixedReader) throws -> RulesRequest {
        var words = string.split(separator: " ", maxSplits: 1).map(String.init)
        var auth: RulesAuth? = alice
        if words[0] == "anon" {
            auth = nil
            words = words[1].split(separator: " ", maxSplits: 1).map(String.init)
        }
        let rest = words[1].split(separator: " ", maxSplits: 1).map(String.init)
        if let method = RulesMethod(rawValue: words[0]), method != .list {
            let stored = reader.before[path(rest[0])]
            let new = rest.count > 1 ? try fields(rest[1]) : nil
            return HearthRulesTests.request(method, rest[0], auth: auth, resource: stored, newResource: new)
        }
        let query = try Self.query(rest[0], isGroup: words[0] == "group", rest.count > 1 ? rest[1] : "")
        return HearthRulesTests.request(.list, query.parent, auth: auth, query: query.query)
    }

    /// `[under PATH] [where BRANCH | BRANCH] [limit N] [offset N] [order FIELD]`
    private static func query(_ target: String, isGroup: Bool, _ string: String) throws -> (
        parent: String, query: RulesQuery
    ) {
        var query = RulesQuery(collectionID: path(target).segments.last ?? "", isGroup: isGroup)
        var parent = isGroup ? "" : target
        var rest = string
        if let (head, tail) = rest.halves(" order ") {
            query.orderBy = [(FieldPath(tail), false)]
            rest = head
        }
        if let (head, tail) = rest.halves(" offset ") {
            query.offset = Int(tail) ?? 0
            rest = head
        }
        if let (head, tail) = rest.halves(" limit ") {
            query.limit = Int(tail)
            rest = head
        }
        if let (head, tail) = rest.halves(" where ") {
            query.branches = try tail.split(separator: " | ").map { try branch(String($0)) }
            rest = head
        }
        if let (_, tail) = rest.halves(" under ") { parent = tail }
        return (parent, query)
    }

    private static func branch(_ string: String) throws -> [RulesQuery.Constraint] {
        try string.components(" ; ").map { part in
            let words = part.split(separator: " ", maxSplits: 2).map(String.init)
            let field = words[0] == "__name__" ? FieldPath.documentName : try FieldPath(parsing: words[0])
            if words[1] == "is" {
                let operators: [String: Filter.UnaryOperator] = [
                    "null": .isNull, "nan": .isNaN, "not-null": .isNotNull, "not-nan": .isNotNaN,
                ]
                return RulesQuery.Constraint(path: field, test: .unary(try #require(operators[words[2]])))
            }
            if field.isDocumentName, words[1] == "==" { return RulesQuery.Constraint(name: path(words[2])) }
            let operators: [String: Filter.Operator] = [
                "==": .equal, "!=": .notEqual, "<": .lessThan, "<=": .lessThanOrEqual, ">": .greaterThan,
                ">=": .greaterThanOrEqual, "in": .in, "not-in": .notIn, "contains": .arrayContains,
                "any": .arrayContainsAny,
            ]
            let value = try #require(try fields("{'v': \(words[2])}")["v"])
            return RulesQuery.Constraint(field, try #require(operators[words[1]]), value)
        }
    }
}

extension String {
    var trimmed: String { first == "\n" ? String(dropFirst()) : self }

    /// The parts before and after the first occurrence, which may be at the beginning without its space.
    func halves(_ separator: String) -> (String, String)? {
        let parts = (" " + self).components(separator)
        return parts.count == 2 ? (parts[0], parts[1]) : nil
    }

    func components(_ separator: String) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
