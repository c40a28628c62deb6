import HearthEvents
import HearthJSON
import HearthModel
import HearthTree
import HearthTestSupport
import Testing

struct TreeEventTests {
    private func node(_ json: String) throws -> Node { try TreeJSON.node(Array(json.utf8)) }

    private func event(
        _ before: String, _ after: String, author: EventAuthor = .administrator(name: "owner")
    ) throws -> TreeEvent? {
        TreeEvent(
            namespace: "ns", path: "status/u1", time: Timestamp(microseconds: 1_763_839_043_279_643),
            before: try node(before), after: try node(after), author: author)
    }

    @Test(arguments: [
        ("null", "1", "\"data\":null,\"delta\":1"), ("1", "null", "\"data\":1,\"delta\":null"),
        ("1", "{\"a\":1}", "\"data\":1,\"delta\":{\"a\":1}"),
        (
            "{\"a\":1,\"b\":{\"c\":1,\"d\":2}}", "{\"b\":{\"c\":3,\"d\":2},\"e\":4}",
            "\"data\":{\"a\":1,\"b\":{\"c\":1,\"d\":2}},\"delta\":{\"a\":null,\"b\":{\"c\":3},\"e\":4}"
        ),
        // Arrays are arrays, but where SDKs merge.
        ("null", "[1,2]", "\"data\":null,\"delta\":[1,2]"), ("[1,2]", "7", "\"data\":[1,2],\"delta\":7"),
        ("[1,2]", "[1,3]", "\"data\":{\"0\":1,\"1\":2},\"delta\":{\"1\":3}"),
        (
            "{\"a\":[1],\"b\":1}", "{\"a\":[1],\"b\":[2,3]}",
            "\"data\":{\"a\":{\"0\":1},\"b\":1},\"delta\":{\"b\":{\"0\":2,\"1\":3}}"
        ),
        ("{\"a\":1}", "{\"a\":{\"b\":1}}", "\"data\":{\"a\":1},\"delta\":{\"a\":{\"b\":1}}"),
        ("{\"a\":{\"b\":1}}", "{\"a\":1}", "\"data\":{\"a\":{\"b\":1}},\"delta\":{\"a\":1}"),
    ])
    func theDeltaIsWhatDiffers(before: String, after: String, expected: String) throws {
        var json: [UInt8] = []
        try #require(try event(before, after)).appendData(to: &json)
        #expect(String(decoding: json, as: UTF8.self) == expected)
    }

    @Test func aChangeNeedsAnotherValue() throws {
        #expect(try event("{\"a\":1}", "{\"a\":1}") == nil)
        #expect(try event("null", "null") == nil)
        #expect(try event("{\"a\":1}", "{\"a\":{\".value\":1,\".priority\":2}}") == nil)
        #expect(try event("{\"a\":1}", "{\"b\":1}")?.kind == .updated)
        #expect(try event("null", "1")?.kind == .created)
        #expect(try event("1", "null")?.kind == .deleted)
    }

    /// What SDKs do with both members gives the value after.
    @Test(arguments: 0..<8) func mergingTheDeltaGivesTheValueAfter(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let (before, after) = (randomJSON(3, &random), randomJSON(3, &random))
            guard let event = try event(before, after) else { continue }
            var json = Array("{".utf8)
            event.appendData(to: &json)
            json.append(UInt8(ascii: "}"))
            guard case .object(let members) = try TreeJSON.value(json) else { return #expect(Bool(false)) }
            let merged = merge(members[0].value, members[1].value)
            var string: [UInt8] = []
            TreeJSON.append(merged, to: &string)
            #expect(try node(String(decoding: string, as: UTF8.self)) == node(after), "\(before) \(after)")
        }
    }

    private func merge(_ data: JSONValue, _ delta: JSONValue) -> JSONValue {
        guard case .object(var members) = data, case .object(let changes) = delta else { return delta }
        for change in changes {
            let index = members.firstIndex { $0.name == change.name }
            if case .null = change.value {
                if let index { members.remove(at: index) }
            } else if let index {
                members[index].value = merge(members[index].value, change.value)
            } else {
                members.append(change)
            }
        }
        return .object(members)
    }

    private func randomJSON(_ depth: Int, _ random: inout SeededGenerator) -> String {
        switch Int.random(in: 0..<(depth == 0 ? 3 : 6), using: &random) {
        case 0: "null"
        case 1: "\(Int.random(in: 0..<3, using: &random))"
        case 2: "\"s\""
        case 3:
            "[" + (0..<2).map { _ in randomJSON(depth - 1, &random) }.joined(separator: ",") + "]"
        default:
            "{"
                + ["a", "b", "c"].filter { _ in Bool.random(using: &random) }
                .map { "\"\($0)\":\(randomJSON(depth - 1, &random))" }.joined(separator: ",") + "}"
        }
    }

    private let id = EventID(version: 1, incarnation: 2, subject: Array("ns/status/u1".utf8), trigger: "presence")

    private func request(_ event: TreeEvent, _ type: String) throws -> EventRequest {
        EventRequest(
            event, id: id, type: try EventType(type), location: "us-central1", form: EventRequest.Form(),
            captures: [("uid", "u1")])
    }

    @Test func binaryModeHasTheAttributesOfTheRealtimeDatabase() throws {
        let request = try request(
            try #require(try event("null", "1", author: .user(id: "u1", provider: "custom", claims: "{}"))),
            "google.firebase.database.ref.v1.created")
        #expect(
            Dictionary(request.headers.map { ($0.name, $0.value) }) { _, _ in "twice" } == [
                "content-type": "application/json", "ce-specversion": "1.0", "ce-id": id.string,
                "ce-source": "//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/ns",
                "ce-type": "google.firebase.database.ref.v1.created", "ce-subject": "refs/status/u1",
                "ce-time": "2025-11-22T19:17:23.279Z", "ce-datacontenttype": "application/json",
                "ce-ref": "status/u1", "ce-instance": "ns", "ce-firebasedatabasehost": "firebaseio.com",
                "ce-location": "us-central1", "ce-authtype": "app_user", "ce-authid": "u1",
            ])
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == "{\"@type\":\"type.googleapis.com/google.events.firebase.database.v1.ReferenceEventData\",\"data\":null,\"delta\":1}"
        )
    }

    @Test(arguments: [
        (EventAuthor.administrator(name: "owner"), "{\"admin\":true}"), (.nobody, "{\"admin\":false}"),
        (
            .user(id: "u1", provider: "custom", claims: "{\"sub\":\"u1\"}"),
            "{\"admin\":false,\"variable\":{\"uid\":\"u1\",\"provider\":\"custom\",\"token\":{\"sub\":\"u1\"}}}"
        ),
    ])
    func theLegacyFormIsFlat(author: EventAuthor, auth: String) throws {
        let type = "providers/google.firebase.database/eventTypes/ref.write"
        let request = try request(try #require(try event("1", "2", author: author)), type)
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == "{\"eventType\":\"\(type)\",\"eventId\":\"\(id.string)\",\"timestamp\":\"2025-11-22T19:17:23.279Z\","
                + "\"resource\":\"projects/_/instances/ns/refs/status/u1\",\"domain\":\"firebaseio.com\","
                + "\"params\":{\"uid\":\"u1\"},\"auth\":\(auth),\"data\":{\"data\":1,\"delta\":2}}")
    }
}
