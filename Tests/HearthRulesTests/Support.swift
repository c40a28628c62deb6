import HearthModel
import Testing

@testable import HearthRules

/// Documents that never change.
final class FixedReader: DocumentReader {
    var before: [ResourcePath: MapValue] = [:]
    var after: [ResourcePath: MapValue] = [:]
    var failure: Status?
    private(set) var reads: [(path: ResourcePath, isAfter: Bool)] = []

    init(_ before: [String: MapValue] = [:]) {
        for (path, fields) in before { self.before[Self.path(path)] = fields }
    }

    static func path(_ string: String) -> ResourcePath {
        ResourcePath(string.split(separator: "/").map(String.init))
    }

    func document(_ path: ResourcePath, isAfter: Bool) throws(Status) -> RulesDocument? {
        if let failure { throw failure }
        reads.append((path, isAfter))
        let fields = isAfter ? after[path] ?? before[path] : before[path]
        return fields.map { RulesDocument(path: path, fields: $0) }
    }
}

/// Compiles valid rules.
func compiled(_ source: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> Ruleset {
    let compilation = Ruleset.compile(source)
    let errors = compilation.issues.filter { $0.severity == .error }
    return try #require(compilation.ruleset, "\(errors)", sourceLocation: sourceLocation)
}

/// The issues of a source in the format of Google's CLI.
func issues(_ source: String) -> [String] {
    Ruleset.compile(source).issues.map {
        "[\($0.severity == .error ? "E" : "W")] \($0.line):\($0.column) - \($0.description)"
    }
}

/// A database's rules around the given body, which begins in line 3.
func service(_ body: String, version: String = "2") -> String {
    "rules_version = '\(version)';\nservice cloud.firestore { match /databases/{db}/documents {\n\(body)\n}}"
}

func path(_ string: String) -> ResourcePath { FixedReader.path(string) }

/// A map from pairs, in any order.
func map(_ fields: (String, Value)...) -> MapValue {
    MapValue(fields.map { MapValue.Field(name: $0.0, value: $0.1) })
}

let alice = RulesAuth(
    uid: "alice",
    token: map(("email", .string("a@x.org")), ("email_verified", .boolean(true)), ("sub", .string("alice"))))

/// 2024-02-29T12:30:45.123456Z
let requestTime = Timestamp(microseconds: 1_709_209_845_123_456)

func request(
    _ method: RulesMethod, _ path: String, auth: RulesAuth? = alice, resource: MapValue? = nil,
    newResource: MapValue? = nil, query: RulesQuery? = nil
) -> RulesRequest {
    let path = FixedReader.path(path)
    return RulesRequest(
        method: method, path: path, auth: auth, time: requestTime,
        resource: resource.map { RulesDocument(path: path, fields: $0) },
        newResource: newResource.map { RulesDocument(path: path, fields: $0) }, query: query)
}

extension Ruleset {
    /// A decision with its own access budget.
    func decide(_ request: RulesRequest, _ documents: [String: MapValue] = [:], total: Int = 10) -> RulesVerdict {
        decide(request, FixedReader(documents), RulesAccess(total: total))
    }
}

/// The fields of a document from a map in the rules language.
func fields(_ string: String) throws -> MapValue {
    let ruleset = try compiled(service("match /x/{d} { allow get: if debug(\(string)) == null; }"))
    let observer = Catcher()
    _ = ruleset.decide(request(.get, "x/y"), FixedReader(), RulesAccess(total: 10), observer: observer)
    guard case .map(let map)? = observer.value, case .map(let value)? = stored(.map(map)) else {
        throw Status.invalidArgument("no fields: \(string)")
    }
    return value
}

/// Stores the operand of `debug`.
private final class Catcher: RulesObserver {
    var value: RuleValue?

    func didEvaluate(_ expression: RulesExpression, _ result: RulesResult) {
        if case .map = result.value { value = result.value }
    }
}

/// A value of rules in its stored form.
func stored(_ value: RuleValue) -> Value? {
    switch value {
    case .null: .null
    case .bool(let value): .boolean(value)
    case .int(let value): .integer(value)
    case .float(let value): .double(value)
    case .string(let value): .string(value)
    case .bytes(let value): .bytes(value)
    case .timestamp(let time):
        Timestamp(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds)).map { .timestamp($0) }
    case .latlng(let point): .geoPoint(point.point)
    case .path(let path): .reference("projects/p" + path.string)
    case .list(let list): .array(list.elements.compactMap(stored))
    case .map(.built(let map)):
        .map(
            MapValue(
                map.entries.compactMap { entry in
                    stored(entry.value).map { MapValue.Field(name: entry.name, value: $0) }
                }))
    default: nil
    }
}
