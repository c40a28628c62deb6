import HearthModel
import HearthTestSupport
import Testing

@testable import HearthRules

/// Lists under rules in which unfiltered fields must not count as absent.
@Suite struct PartialListTests {
    private func judge(
        _ condition: String, _ constraints: [RulesQuery.Constraint], isComplete: Bool = false
    ) throws -> Bool {
        let ruleset = try compiled(service("match /c/{d} { allow read: if \(condition); }"))
        let query = RulesQuery(collectionID: "c", branches: [constraints], isComplete: isComplete)
        let request = RulesRequest(
            method: .list, database: "(default)", path: path("c"), auth: nil, time: requestTime, query: query)
        return ruleset.decide(request, FixedReader(), RulesAccess(total: 10)).isAllowed
    }

    /// Conditions that hold for documents without a field, and that an emulator evaluates to true for all.
    static let absences = [
        "!('secret' in resource.data)", "resource.data.get('private', false) == false",
        "resource.data.get('private', false) != true", "resource.data.keys().hasOnly(['a'])",
        "!resource.data.keys().hasAny(['secret'])", "resource.data.size() == 0", "resource.data.keys().size() == 0",
        "resource.data.values().size() == 0", "resource.data == {}", "{} == resource.data", "resource.data in [{}]",
        "resource.data.diff({}).affectedKeys().size() == 0", "{'a': 1}.diff(resource.data).removedKeys().size() == 1",
        "resource.data.get(['m', 'x'], 0) == 0", "!('x' in resource.data.get('m', {}))",
        "[resource.data] == [{}]", "{'d': resource.data} == {'d': {}}", "resource.data.keys().toSet() == [].toSet()",
        "!('id' in resource)", "!('secret' in resource.data) || false", "'secret' in resource.data ? false : true",
    ]

    @Test(arguments: absences) func unfilteredFieldsAreNotAbsent(_ condition: String) throws {
        #expect(try !judge(condition, []))
        // A condition that cannot be proved must not be proved by its negation either.
        #expect(try !judge("!(\(condition))", []))
    }

    @Test func theEmulatorsModeIsSupported() throws {
        for condition in Self.absences where !condition.contains("{'a': 1}") {
            #expect(try judge(condition, [], isComplete: true), "\(condition)")
        }
    }

    @Test(arguments: [
        "resource.data.a == 1", "'a' in resource.data", "resource.data.get('a', 2) == 1", "resource.data['a'] == 1",
        "resource.data.a in [1, 2]", "resource != null", "resource.data != null", "resource.data.a is int",
        "'a' in resource.data || 'b' in resource.data", "resource.data is map", "!(resource.data == null)",
        "resource.data != {'a': 2}", "request.query.limit == null || true",
    ])
    func filteredFieldsAreKnown(_ condition: String) throws {
        let filter = RulesQuery.Constraint(FieldPath(segments: ["a"]), .equal, .integer(1))
        #expect(try judge(condition, [filter]))
    }

    /// The filters of two fields do not show whether the fields are equal.
    @Test func aFieldThatIsPartlyFilteredIsNotCompared() throws {
        let one = MapValue([MapValue.Field(name: "b", value: .integer(1))])
        let member = RulesQuery.Constraint(FieldPath(segments: ["c", "b"]), .equal, .integer(1))
        let excluded = RulesQuery.Constraint(FieldPath(segments: ["a"]), .notEqual, .map(one))
        #expect(try !judge("resource.data.a != resource.data.c", [excluded, member]))
        #expect(try !judge("resource.data.c != resource.data.a", [excluded, member]))
        let contained = RulesQuery.Constraint(FieldPath(segments: ["tags"]), .arrayContains, .map(one))
        #expect(try !judge("resource.data.tags.hasAny([resource.data.c])", [contained, member]))
        #expect(try judge("resource.data.tags.hasAny([{'b': 1}])", [contained, member]))
    }

    /// U+1F600 sorts after U+FF5E in a filter, and before it in a rule.
    @Test func differentOrdersOfFiltersAndRulesProveNothing() throws {
        func filter(_ string: String) -> RulesQuery.Constraint {
            RulesQuery.Constraint(FieldPath(segments: ["a"]), .greaterThanOrEqual, .string(string))
        }
        #expect(try !judge("resource.data.a >= '\u{FF5E}'", [filter("\u{FF5E}")]))
        #expect(try judge("resource.data.a >= 'x'", [filter("\u{FF5E}")]))
        let number = RulesQuery.Constraint(FieldPath(segments: ["a"]), .greaterThan, .integer(1))
        for condition in ["resource.data.a > float('NaN')", "!(resource.data.a > float('NaN'))"] {
            #expect(try !judge(condition, [number]))
        }
    }

    /// A range is partial knowledge of a field: an undecided test must not evaluate to false.
    @Test(arguments: [
        "!(resource.data.a in [7])", "![resource.data.a].hasAny([7])", "!(resource.data.a is string)",
        "{'k': resource.data.a} != {'k': 7}", "[resource.data.a] != [7]", "resource.data.a != 7",
        "resource.data.get(['a', 'b'], 0) == 0",
    ])
    func anUndecidedRangeIsNotFalse(_ condition: String) throws {
        let filter = RulesQuery.Constraint(FieldPath(segments: ["a"]), .greaterThan, .integer(1))
        #expect(try !judge(condition, [filter]))
    }

    @Test func theCompilerWarnsOfThem() {
        func count(_ condition: String, methods: String = "read") -> Int {
            Ruleset.listWarnings(
                service(
                    "function f(x) { return x && !('a' in resource.data); }\nmatch /c/{d} { allow \(methods): if \(condition); }"
                )
            ).count
        }
        #expect(count("!('secret' in resource.data)") == 1)
        #expect(count("resource.data.get('a', 1) == 1 && resource.data.keys().hasOnly(['a'])") == 2)
        #expect(count("resource.data == {'a': 1} || resource.data.m.size() == 1") == 2)
        #expect(count("f(true) && f(false)") == 1)
        #expect(count("!('secret' in resource.data)", methods: "get") == 0)
        #expect(count("!('secret' in request.resource.data)", methods: "read, create") == 0)
        #expect(count("resource.data.a == 1 && request.auth.token.get('x', 1) == 1") == 0)
    }

    @Test func theirCallsMayBeAsManyAsASourceHas() {
        let count = 1000
        let functions = (0..<count).map {
            "function f\($0)() { return \(String(repeating: "!", count: 98))f\($0 + 1)(); }"
        }
        let last = "function f\(count)() { return 'a' in resource.data; }"
        let source = service((functions + [last, "match /c/{d} { allow read: if f0(); }"]).joined(separator: "\n"))
        #expect(Ruleset.listWarnings(source).count == 1)
    }

    // MARK: Any

    private static let atoms = [
        "'a' in resource.data", "'b' in resource.data", "resource.data.get('a', 1) == 1", "resource.data.a == 1",
        "resource.data.a != 2", "resource.data.b < 2", "resource.data.b >= 1",
        "resource.data.keys().hasOnly(['a', 'b'])",
        "resource.data.keys().hasAll(['a'])", "resource.data.keys().hasAny(['m', 'tags'])", "resource.data.size() < 3",
        "resource.data == {'a': 1}", "resource.data.a in [1, 2]", "[resource.data.b].hasAny([1])",
        "resource.data.diff({'a': 1}).affectedKeys().size() == 0", "resource.data.m == {'x': 1}",
        "resource.data.m != {'x': 2, 'y': 1}", "'x' in resource.data.m", "resource.data.m.get('x', 0) == 0",
        "resource.data.get(['m', 'x'], 0) == 0", "resource.data.m.x == 1", "resource.data.m.size() == 1",
        "1 in resource.data.tags", "resource.data.tags.hasAny([2])", "resource.data.tags == [1]",
        "resource.data.tags.size() == 1", "resource.data.a is int", "resource.data in [{'a': 1}]",
        "{'k': resource.data.a} == {'k': 1}", "[resource.data.a, 1] != [2, 1]", "resource.data.values().size() == 2",
        "resource.data.a == resource.data.b", "resource == null", "'id' in resource", "resource.data.b == null",
        "[1, 2].toSet().hasAny([resource.data.a])", "resource.data.m.keys().hasAll(['y'])", "resource.data.a == 's'",
        "[resource.data.a].toSet().size() == 1", "[1].concat([resource.data.a]).hasAll([2])",
        "resource.data.b is string",
    ]

    private static func condition(_ random: inout some RandomNumberGenerator, depth: Int) -> String {
        func next(_ random: inout some RandomNumberGenerator) -> String { condition(&random, depth: depth - 1) }
        switch depth == 0 ? 0 : Int.random(in: 0..<6, using: &random) {
        case 1, 2: return "!(\(next(&random)))"
        case 3: return "(\(next(&random)) && \(next(&random)))"
        case 4: return "(\(next(&random)) || \(next(&random)))"
        case 5: return "(\(next(&random)) ? \(next(&random)) : \(next(&random)))"
        default: return atoms.randomElement(using: &random) ?? "true"
        }
    }

    private static func scalar(_ random: inout some RandomNumberGenerator) -> Value {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: .null
        case 1: .string("s")
        default: .integer(Int64.random(in: 0...3, using: &random))
        }
    }

    private static func document(_ random: inout some RandomNumberGenerator) -> MapValue {
        var fields: [MapValue.Field] = []
        for name in ["a", "b"] where Bool.random(using: &random) {
            fields.append(.init(name: name, value: scalar(&random)))
        }
        if Bool.random(using: &random) {
            var inner: [MapValue.Field] = []
            for name in ["x", "y"] where Bool.random(using: &random) {
                inner.append(.init(name: name, value: scalar(&random)))
            }
            fields.append(.init(name: "m", value: .map(MapValue(inner))))
        }
        if Bool.random(using: &random) {
            fields.append(
                .init(
                    name: "tags",
                    value: .array((0..<Int.random(in: 0...2, using: &random)).map { _ in scalar(&random) })))
        }
        return MapValue(fields)
    }

    private static func constraint(_ random: inout some RandomNumberGenerator) -> RulesQuery.Constraint {
        if Int.random(in: 0..<5, using: &random) == 0 {
            return RulesQuery.Constraint(
                FieldPath(segments: ["tags"]), .arrayContains, .integer(Int64.random(in: 0...2, using: &random)))
        }
        let path = [["a"], ["b"], ["m", "x"]].randomElement(using: &random) ?? ["a"]
        let comparisons: [Filter.Operator] = [
            .equal, .equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual,
        ]
        let value = Value.integer(Int64.random(in: 0...3, using: &random))
        return RulesQuery.Constraint(
            FieldPath(segments: path), comparisons.randomElement(using: &random) ?? .equal, value)
    }

    /// Whether a query finds a document; the constants of the filters are whole numbers here.
    private static func matches(_ fields: MapValue, _ constraint: RulesQuery.Constraint) -> Bool {
        guard case .field(let comparison, .integer(let wanted)) = constraint.test else { return false }
        var value: Value? = .map(fields)
        for name in constraint.path.segments {
            guard case .map(let map)? = value else { return false }
            value = map[name]
        }
        guard let value else { return false }
        if comparison == .arrayContains {
            guard case .array(let elements) = value else { return false }
            return elements.contains(.integer(wanted))
        }
        if comparison == .notEqual { return value != .null && value != .integer(wanted) }
        guard case .integer(let number) = value else { return false }
        switch comparison {
        case .equal: return number == wanted
        case .lessThan: return number < wanted
        case .lessThanOrEqual: return number <= wanted
        case .greaterThan: return number > wanted
        default: return number >= wanted
        }
    }

    /// Every document in an allowed list may be got.
    @Test(arguments: 0..<8) func everyListedDocumentMayBeGot(_ part: Int) throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SeededGenerator(seed: seed)
        var allowed = 0
        var tried = 0
        // Few lists are allowed, so the loop counts those.
        while allowed < 60, tried < 30_000 {
            tried += 1
            let condition = Self.condition(&random, depth: 3)
            let constraints = (0..<Int.random(in: 0...2, using: &random)).map { _ in Self.constraint(&random) }
            let ruleset = try compiled(service("match /c/{d} { allow read: if \(condition); }"))
            let query = RulesQuery(collectionID: "c", branches: [constraints], isComplete: false)
            let list = RulesRequest(
                method: .list, database: "(default)", path: path("c"), auth: nil, time: requestTime, query: query)
            guard ruleset.decide(list, FixedReader(), RulesAccess(total: 10)).isAllowed else { continue }
            allowed += 1
            for _ in 0..<60 {
                let fields = Self.document(&random)
                guard constraints.allSatisfy({ Self.matches(fields, $0) }) else { continue }
                let get = RulesRequest(
                    method: .get, database: "(default)", path: path("c/d"), auth: nil, time: requestTime,
                    resource: RulesDocument(path: path("c/d"), fields: fields))
                let verdict = ruleset.decide(get, FixedReader(), RulesAccess(total: 10))
                #expect(
                    verdict.isAllowed, "seed \(seed): \(condition) with \(constraints) finds \(fields)")
                if !verdict.isAllowed { return }
            }
        }
        #expect(allowed == 60, "seed \(seed)")
    }
}
