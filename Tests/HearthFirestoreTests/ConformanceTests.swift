import Foundation
import HearthModel
import HearthSync
import HearthWire
import Testing

@testable import HearthFirestore

/// The public request vectors: each is one call, and the request that it makes, or an error. `MANIFEST.json` next to
/// them lists which of them apply to this API, and why others do not.
struct ConformanceTests {
    @Test(arguments: Vectors.names(kind: ["create", "set"]))
    func set(_ name: String) throws {
        let bench = try Bench()
        let call = try Vectors.call(name)
        try Vectors.check(name, call) { () throws(Status) in
            let data = Vectors.sentinels(Vectors.json(call["jsonData"])) as! [String: Any]
            let builder = MutationBuilder(bench.firestore)
            let key = Vectors.key(call["docRefPath"])
            guard let option = call["option"] as? [String: Any] else { return try builder.set(data, key) }
            if option["all"] as? Bool == true { return try builder.set(data, key, merge: true) }
            var fields: [Any] = []
            for field in option["fields"] as! [[String: Any]] { fields.append(FieldPath(field["field"] as! [String])) }
            return try builder.set(data, key, mergeFields: fields)
        }
    }

    @Test(arguments: Vectors.names(kind: ["update"]))
    func update(_ name: String) throws {
        let bench = try Bench()
        let call = try Vectors.call(name)
        try Vectors.check(name, call) { () throws(Status) in
            let data = Vectors.sentinels(Vectors.json(call["jsonData"])) as! [String: Any]
            return try MutationBuilder(bench.firestore).update(data, Vectors.key(call["docRefPath"]))
        }
    }

    @Test(arguments: Vectors.names(kind: ["updatePaths"]))
    func updatePaths(_ name: String) throws {
        let bench = try Bench()
        let call = try Vectors.call(name)
        try Vectors.check(name, call) { () throws(Status) in
            var data: [AnyHashable: Any] = [:]
            for (path, value) in zip(call["fieldPaths"] as! [[String: Any]], call["jsonValues"] as! [Any]) {
                let segments = path["field"] as? [String] ?? []
                _ = try FieldPath.checked(segments)
                data[FieldPath(segments)] = Vectors.sentinels(Vectors.json(value))
            }
            return try MutationBuilder(bench.firestore).update(data, Vectors.key(call["docRefPath"]))
        }
    }

    @Test(arguments: Vectors.names(kind: ["delete"]))
    func delete(_ name: String) async throws {
        let bench = try Bench()
        let call = try Vectors.call(name)
        let key = Vectors.key(call["docRefPath"])
        try await bench.firestore.document(key.string).delete()
        let write = try #require(bench.engine.state.with { $0.writes }.first?.first)
        try Vectors.check(name, call) { () throws(Status) in write }
    }

    @Test(arguments: Vectors.names(kind: ["query"]))
    func query(_ name: String) throws {
        let bench = try Bench()
        let call = try Vectors.call(name)
        let query: Query
        do throws(Status) {
            query = try QueryVector.build(call, bench)
        } catch {
            #expect(call["isError"] != nil, "\(name): \(error)")
            #expect(error.code == .invalidArgument)
            return
        }
        try #require(call["isError"] == nil, "\(name) must fail")
        let database = DatabaseName(project: Bench.project)
        let message = TargetSerializer(database: database).message(query.model.target).query?.structuredQuery
        let json = try #require(message).json()
        let actual = try Vectors.canonical(json: json)
        let expected = try QueryVector.expected(call, query)
        #expect(actual == expected, "\(name)")
    }

    @Test func counts() throws {
        #expect(Vectors.names(kind: ["create", "set"]).count == 28 + 48)
        #expect(Vectors.names(kind: ["update"]).count == 38)
        #expect(Vectors.names(kind: ["updatePaths"]).count == 37)
        #expect(Vectors.names(kind: ["delete"]).count == 1)
        #expect(Vectors.names(kind: ["query"]).count == 30)
    }
}

/// Reads the vectors.
enum Vectors {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Vectors/firestore-client").standardizedFileURL

    private struct Entry: Decodable {
        var kind: String
        var use: String
    }

    private static let manifest: [String: Entry] = {
        // Arguments of tests cannot throw: without the file there are none, and `counts` fails.
        guard let data = try? Data(contentsOf: folder.appendingPathComponent("MANIFEST.json")) else { return [:] }
        return try! JSONDecoder().decode([String: Entry].self, from: data)
    }()

    /// The vectors that apply to the client's API.
    static func names(kind: Set<String>) -> [String] {
        manifest.filter { kind.contains($0.value.kind) && $0.value.use != "skip" }.keys.sorted()
    }

    /// The member of the test that describes the call.
    static func call(_ name: String) throws -> [String: Any] {
        let data = try Data(contentsOf: folder.appendingPathComponent(name))
        let file = try JSONSerialization.jsonObject(with: data) as! [String: Any]
        let test = (file["tests"] as! [[String: Any]])[0]
        return test.first { $0.value is [String: Any] }!.value as! [String: Any]
    }

    static func json(_ string: Any?) -> Any {
        try! JSONSerialization.jsonObject(with: Data((string as! String).utf8), options: [.fragmentsAllowed])
    }

    static func key(_ name: Any?) -> ResourcePath {
        ResourcePath((name as! String).split(separator: "/").dropFirst(5).map(String.init))
    }

    /// Converts strings that represent sentinels to sentinels.
    static func sentinels(_ value: Any) -> Any {
        switch value {
        case let string as String where string == "Delete": return FieldValue.delete()
        case let string as String where string == "ServerTimestamp": return FieldValue.serverTimestamp()
        case let string as String where string == "NaN": return Double.nan
        case let map as [String: Any]: return map.mapValues { sentinels($0) }
        case let array as [Any]:
            let rest = array.dropFirst().map { sentinels($0) }
            if array.first as? String == "ArrayUnion" { return FieldValue.arrayUnion(rest) }
            if array.first as? String == "ArrayRemove" { return FieldValue.arrayRemove(rest) }
            return array.map { sentinels($0) }
        default: return value
        }
    }

    /// Runs a write call through the encoder of the write stream.
    static func check(_ name: String, _ call: [String: Any], _ mutation: () throws(Status) -> Mutation) throws {
        let made: Mutation
        do throws(Status) {
            made = try mutation()
        } catch {
            #expect(call["isError"] != nil, "\(name): \(error)")
            #expect(error.code == .invalidArgument)
            return
        }
        try #require(call["isError"] == nil, "\(name) must fail")
        let database = DatabaseName(project: Bench.project)
        let request = call["request"] as! [String: Any]
        var expected = (request["writes"] as! [[String: Any]])[0]
        // The precondition of `create` exists only in the server API.
        if name.hasPrefix("create") { expected["currentDocument"] = nil }
        let actualString = try canonical(json: MutationSerializer(database: database).message(made).json())
        let expectedString = try canonical(expected)
        #expect(actualString == expectedString, "\(name)")
    }

    /// Messages as strings that are equal when the messages are: lists without an order are sorted, and empty members
    /// that are equivalent to absent ones are omitted.
    static func canonical(json: [UInt8]) throws -> String {
        try canonical(JSONSerialization.jsonObject(with: Data(json)))
    }

    static func canonical(_ value: Any) throws -> String {
        let tidy = tidy(value, in: "")
        return String(decoding: try JSONSerialization.data(withJSONObject: tidy, options: [.sortedKeys]), as: UTF8.self)
    }

    private static func tidy(_ value: Any, in name: String) -> Any {
        switch value {
        case let map as [String: Any]:
            var result = map
            for (name, member) in map {
                let member = tidy(member, in: name)
                // Absent and empty are equivalent for a document's fields and lists, but not for a mask or a map value.
                let isEmpty = (member as? [String: Any])?.isEmpty ?? (member as? [Any])?.isEmpty ?? false
                result[name] = isEmpty && ["fields", "fieldPaths", "values"].contains(name) ? nil : member
            }
            return result
        case let list as [Any]:
            let list = list.map { tidy($0, in: "") }
            switch name {
            case "fieldPaths": return (list as! [String]).sorted()
            case "updateTransforms":
                return (list as! [[String: Any]]).sorted { $0["fieldPath"] as! String > $1["fieldPath"] as! String }
            default: return list
            }
        default: return value
        }
    }
}

/// Query vectors.
enum QueryVector {
    static func build(_ call: [String: Any], _ bench: Bench) throws(Status) -> Query {
        var query: Query = bench.firestore.collection(Vectors.key(call["collPath"]).string)
        for clause in call["clauses"] as! [[String: Any]] {
            let (name, content) = clause.first!
            query = try add(name, content, to: query, bench)
        }
        return query
    }

    private static func add(_ name: String, _ content: Any, to query: Query, _ bench: Bench) throws(Status) -> Query {
        let map = content as? [String: Any] ?? [:]
        switch name {
        case "where":
            let path = try path(map)
            let value = Vectors.sentinels(Vectors.json(map["jsonValue"]))
            return try query.filtered(.field(path, op(map["op"] as! String), Carried(value)))
        case "orderBy": return try query.ordered(try path(map), map["direction"] as! String == "desc")
        case "limit": return try query.limited(content as! Int, .first)
        case "startAt", "startAfter", "endAt", "endBefore":
            let bound = ClientQuery.Bound(
                values: try values(map, query, bench), isInclusive: name == "startAt" || name == "endAt")
            return query.with { query in
                if name.hasPrefix("start") { query.start = bound } else { query.end = bound }
            }
        default: fatalError("\(name) is no clause of the client's")
        }
    }

    private static func values(_ map: [String: Any], _ query: Query, _ bench: Bench) throws(Status) -> [Value] {
        guard let snapshot = map["docSnapshot"] as? [String: Any] else {
            let values = (map["jsonValues"] as? [Any] ?? []).map { Vectors.sentinels(Vectors.json($0)) }
            return try query.values(values)
        }
        let data = Vectors.json(snapshot["jsonData"]) as! [String: Any]
        let fields = try bench.firestore.reader.set(data).fields
        return try query.values(of: bench.snapshot(Vectors.key(snapshot["path"]).string, fields.fields))
    }

    private static func path(_ map: [String: Any]) throws(Status) -> HearthModel.FieldPath {
        try FieldPath.checked((map["path"] as! [String: Any])["field"] as! [String])
    }

    private static func op(_ name: String) -> HearthModel.Filter.Operator {
        switch name {
        case "==": .equal
        case "<": .lessThan
        case "<=": .lessThanOrEqual
        case ">": .greaterThan
        case ">=": .greaterThanOrEqual
        case "in": .in
        case "array-contains": .arrayContains
        case "array-contains-any": .arrayContainsAny
        case "not-in": .notIn
        default: fatalError("\(name) is no operator")
        }
    }

    /// The vector's query with the orders that this client always sends.
    static func expected(_ call: [String: Any], _ query: Query) throws -> String {
        var expected = call["query"] as! [String: Any]
        var orders = expected["orderBy"] as? [[String: Any]] ?? []
        var named = Set(orders.map { ($0["field"] as! [String: Any])["fieldPath"] as! String })
        let direction = orders.last?["direction"] as? String ?? "ASCENDING"
        var inequalities: Set<String> = []
        collect(expected["where"] as? [String: Any], into: &inequalities)
        for field in inequalities.sorted() + ["__name__"] where named.insert(field).inserted {
            orders.append(["field": ["fieldPath": field], "direction": direction])
        }
        expected["orderBy"] = orders
        return try Vectors.canonical(expected)
    }

    private static func collect(_ filter: [String: Any]?, into fields: inout Set<String>) {
        if let composite = filter?["compositeFilter"] as? [String: Any] {
            for member in composite["filters"] as! [[String: Any]] { collect(member, into: &fields) }
        }
        let inequalityNames = [
            "LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "NOT_EQUAL", "NOT_IN",
        ]
        if let field = filter?["fieldFilter"] as? [String: Any], inequalityNames.contains(field["op"] as! String) {
            fields.insert((field["field"] as! [String: Any])["fieldPath"] as! String)
        }
    }
}
