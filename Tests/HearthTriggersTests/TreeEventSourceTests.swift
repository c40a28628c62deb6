import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTreeStorage
@testable import HearthTriggers

/// What is sent of an event, byte by byte, and for how long.
struct TreeEventSourceTests {
    private static let ce = "google.firebase.database.ref.v1."
    private static let legacy = "providers/google.firebase.database/eventTypes/ref."
    private static let user = EventAuthor.user(
        id: "u1", provider: "password", claims: "{\"sub\":\"u1\",\"email\":\"a@b.c\"}")

    /// 2026-11-26T18:13:43.123456Z.
    private static let version: Int64 = 1_795_716_823_123_456

    private func request(
        _ type: String, _ before: String, _ after: String, by author: EventAuthor = user, _ more: String = ""
    ) throws -> (request: EventRequest, id: String) {
        let definition = try treeDefinition("presence", "status/{uid}/{device=p*}", type, more: more)
        let clock = StoppedClock(microseconds: Self.version - 1)
        let tree = try EventTree([definition], clock: clock)
        defer { tree.database.close() }
        if before != "null" {
            tree.database.setRecorder(nil)
            try tree.put("status/u\u{e9}/p1", before)
            tree.database.setRecorder(tree.events)
        } else {
            clock.jump(microseconds: 1)
        }
        let version = try tree.put("status/u\u{e9}/p1", after, by: author).version
        #expect(version == Self.version)
        let source = tree.source(definition, clock: clock)
        let event = try #require(try source.events(after: nil, countMax: 1).first)
        let request = try #require(try source.request(for: event))
        // The same in each attempt.
        #expect(try source.request(for: event) == request)
        let id = EventID(
            version: version, incarnation: 0, subject: Array("ns/status/u\u{e9}/p1".utf8), trigger: "presence")
        return (request, id.string)
    }

    private func string(_ request: EventRequest) -> String {
        request.headers.map { "\($0.name): \($0.value)\n" }.joined() + "\n"
            + String(decoding: request.body, as: UTF8.self)
    }

    @Test(arguments: [
        ("created", "null", "{\"a\":1}", "\"data\":null,\"delta\":{\"a\":1}"),
        ("updated", "{\"a\":1}", "{\"b\":[1,2]}", "\"data\":{\"a\":1},\"delta\":{\"a\":null,\"b\":{\"0\":1,\"1\":2}}"),
        ("deleted", "[true]", "null", "\"data\":[true],\"delta\":null"),
        ("written", "\"x\"", "1.5", "\"data\":\"x\",\"delta\":1.5"),
    ])
    func cloudEventsInBinaryMode(kind: String, before: String, after: String, data: String) throws {
        let (request, id) = try request(Self.ce + kind, before, after)
        #expect(id.hasPrefix("\(String(Self.version, radix: 16).leftPadded)-"))
        #expect(
            string(request) == """
                content-type: application/json
                ce-specversion: 1.0
                ce-id: \(id)
                ce-source: //firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/ns
                ce-type: google.firebase.database.ref.v1.\(kind)
                ce-subject: refs/status/u\u{e9}/p1
                ce-time: \(Self.time)
                ce-datacontenttype: application/json
                ce-ref: status/u\u{e9}/p1
                ce-instance: ns
                ce-firebasedatabasehost: firebaseio.com
                ce-location: us-central1
                ce-authtype: app_user
                ce-authid: u1

                {"@type":"type.googleapis.com/google.events.firebase.database.v1.ReferenceEventData",\(data)}
                """)
    }

    @Test func cloudEventsInStructuredMode() throws {
        let (request, id) = try request(
            Self.ce + "written", "1", "2", by: .nobody, ",\"mode\":\"structured\"")
        #expect(
            string(request)
                == "content-type: application/cloudevents+json; charset=utf-8\n\n"
                + "{\"specversion\":\"1.0\",\"id\":\"\(id)\","
                + "\"source\":\"//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/ns\","
                + "\"type\":\"google.firebase.database.ref.v1.written\",\"subject\":\"refs/status/u\u{e9}/p1\","
                + "\"time\":\"\(Self.time)\",\"datacontenttype\":\"application/json\","
                + "\"ref\":\"status/u\u{e9}/p1\",\"instance\":\"ns\",\"firebasedatabasehost\":\"firebaseio.com\","
                + "\"location\":\"us-central1\",\"authtype\":\"unauthenticated\",\"data\":"
                + "{\"@type\":\"type.googleapis.com/google.events.firebase.database.v1.ReferenceEventData\","
                + "\"data\":1,\"delta\":2}}")
    }

    @Test(arguments: [
        ("create", "null", "1", "\"data\":null,\"delta\":1"), ("update", "1", "2", "\"data\":1,\"delta\":2"),
        ("delete", "1", "null", "\"data\":1,\"delta\":null"), ("write", "1", "2", "\"data\":1,\"delta\":2"),
    ])
    func theLegacyForm(kind: String, before: String, after: String, data: String) throws {
        let (request, id) = try request(Self.legacy + kind, before, after)
        #expect(
            string(request)
                == "content-type: application/json\n\n"
                + "{\"eventType\":\"providers/google.firebase.database/eventTypes/ref.\(kind)\",\"eventId\":\"\(id)\","
                + "\"timestamp\":\"\(Self.time)\",\"resource\":\"projects/_/instances/ns/refs/status/u\u{e9}/p1\","
                + "\"domain\":\"firebaseio.com\",\"params\":{\"uid\":\"u\u{e9}\",\"device\":\"p1\"},"
                + "\"auth\":{\"admin\":false,\"variable\":{\"uid\":\"u1\",\"provider\":\"password\","
                + "\"token\":{\"sub\":\"u1\",\"email\":\"a@b.c\"}}},\"data\":{\(data)}}")
    }

    private static let time = "2026-11-26T18:13:43.123Z"

    @Test(arguments: [
        (EventAuthor.administrator(name: "x"), "admin", nil as String?), (.nobody, "unauthenticated", nil),
        (.system, "unknown", nil), (user, "app_user", "u1"),
    ])
    func theAuthorIsNamed(author: EventAuthor, kind: String, id: String?) throws {
        let request = try request(Self.ce + "written", "1", "2", by: author).request
        #expect(request.headers.first { $0.name == "ce-authtype" }?.value == kind)
        #expect(request.headers.first { $0.name == "ce-authid" }?.value == id)
    }

    /// A pattern that was changed has no captures of a location that it doesn't match.
    @Test func anotherPatternHoldsForLaterWrites() throws {
        let former = try treeDefinition("t", "a/{x}", Self.legacy + "write")
        let tree = try EventTree([former])
        defer { tree.database.close() }
        try tree.put("a/b", "1")
        let source = tree.source(former)
        let event = try #require(try source.events(after: nil, countMax: 1).first)
        source.definition.change(try treeDefinition("t", "a/{x}/{y}/{z}", Self.legacy + "write"))
        let body = String(decoding: try #require(try source.request(for: event)).body, as: UTF8.self)
        #expect(body.contains("\"params\":{},"))
    }

    @Test func eventsBecomeTooOld() throws {
        let clock = StoppedClock(microseconds: Self.version)
        let definition = try treeDefinition(
            "t", "a/{x}", Self.ce + "written", retry: "{\"maxAge\":\"1h\"}")
        let tree = try EventTree([definition], clock: clock)
        defer { tree.database.close() }
        let version = try tree.put("a/b", "1").version
        let source = tree.source(definition, clock: clock)
        #expect(source.expiredVersion() <= version)
        clock.advance(seconds: 3500)
        #expect(source.expiredVersion() <= version)
        clock.advance(seconds: 200)
        #expect(source.expiredVersion() > version)
    }
}

extension String {
    fileprivate var leftPadded: String { String(repeating: "0", count: 16 - utf8.count) + self }
}
