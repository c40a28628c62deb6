import HearthEvents
import HearthJSON
import HearthModel
import HearthWire
import Testing

struct DocumentEventTests {
    static let created = Timestamp(microseconds: 1_763_839_042_682_316)
    static let updated = Timestamp(microseconds: 1_763_839_043_279_643)
    static let name = "projects/P/databases/(default)/documents/cities/LA"

    static func document(_ fields: [(String, Value)], _ updated: Timestamp = updated) -> EncodedDocument {
        EncodedDocument(
            name: name, fields: FieldsCodec.encode(map(fields)), createTime: created, updateTime: updated)
    }

    static func map(_ fields: [(String, Value)]) -> MapValue {
        MapValue(fields.map { MapValue.Field(name: $0.0, value: $0.1) })
    }

    static func event(
        _ before: EncodedDocument?, _ after: EncodedDocument?, author: EventAuthor = .nobody
    ) -> DocumentEvent? {
        DocumentEvent(
            database: DatabaseName(project: "P"), path: "cities/LA", commitTime: updated, before: before, after: after,
            author: author)
    }

    private let id = EventID(
        version: 0x6_4432_1234, incarnation: 7, subject: Array(Self.name.utf8), trigger: "aggregate")

    private let old = Self.document([("n", .integer(1))], Self.created)
    private let new = Self.document([("n", .integer(2))])

    private func request(
        _ event: DocumentEvent?, _ type: String, _ form: EventRequest.Form = EventRequest.Form()
    ) throws -> EventRequest {
        try EventRequest(
            try #require(event), id: id, type: EventType(type), location: "us-central1", form: form)
    }

    private func headers(_ request: EventRequest) -> [String: String] {
        Dictionary(request.headers.map { ($0.name, $0.value) }) { _, _ in "twice" }
    }

    // MARK: When there is an event

    @Test func anEventNeedsAnotherUpdateTime() {
        #expect(Self.event(nil, nil) == nil)
        #expect(Self.event(new, new) == nil)
        #expect(Self.event(nil, new)?.kind == .created)
        #expect(Self.event(old, new)?.kind == .updated)
        #expect(Self.event(old, nil)?.kind == .deleted)
        // The same fields, written again.
        #expect(Self.event(old, Self.document([("n", .integer(1))]))?.kind == .updated)
    }

    @Test func aTypeWantsItsKind() throws {
        for (name, wanted) in [
            ("google.cloud.firestore.document.v1.created", [ChangeKind.created]),
            ("google.cloud.firestore.document.v1.updated.withAuthContext", [.updated]),
            ("providers/cloud.firestore/eventTypes/document.delete", [.deleted]),
            ("google.firebase.database.ref.v1.written", [.created, .updated, .deleted]),
        ] {
            let type = try EventType(name)
            #expect(type.name == name)
            #expect([ChangeKind.created, .updated, .deleted].filter(type.wants) == wanted)
        }
        #expect(throws: Status.invalidArgument("There is no event type \"x\".")) { try EventType("x") }
    }

    // MARK: The forms

    @Test func binaryModeHasAllAttributesAndProtobuf() throws {
        let request = try request(Self.event(old, new), "google.cloud.firestore.document.v1.updated")
        #expect(
            headers(request) == [
                "content-type": "application/protobuf", "ce-specversion": "1.0",
                "ce-id": "0000000644321234-\(id.string.dropFirst(17))",
                "ce-source": "//firestore.googleapis.com/projects/P/databases/(default)",
                "ce-type": "google.cloud.firestore.document.v1.updated", "ce-subject": "documents/cities/LA",
                "ce-time": "2025-11-22T19:17:23.279643Z", "ce-datacontenttype": "application/protobuf",
                "ce-dataschema":
                    "https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto",
                "ce-project": "P", "ce-database": "(default)", "ce-namespace": "(default)",
                "ce-location": "us-central1", "ce-document": "cities/LA",
            ])
        var expected = ProtobufWriter()
        expected.tag(1, 2)
        expected.lengthDelimited(new.protobuf())
        expected.tag(2, 2)
        expected.lengthDelimited(old.protobuf())
        #expect(request.body == expected.bytes + [0x1a, 3, 0x0a, 1, UInt8(ascii: "n")])
        let base64 = try self.request(
            Self.event(old, new), "google.cloud.firestore.document.v1.updated", EventRequest.Form(isEmulated: true))
        #expect(base64.body == Array(Base64.encode(request.body).utf8) && base64.headers == request.headers)
    }

    @Test func absentStatesAreNotSent() throws {
        let type = "google.cloud.firestore.document.v1.written"
        #expect(try request(Self.event(nil, new), type).body.first == 0x0a)
        #expect(try request(Self.event(old, nil), type).body.first == 0x12)
        #expect(
            try request(Self.event(nil, new), type).body.count == new.protobuf().count + 2)
    }

    @Test func structuredModeIsOneObject() throws {
        let type = "google.cloud.firestore.document.v1.created"
        let binary = try request(Self.event(nil, new), type)
        let structured = try request(Self.event(nil, new), type, EventRequest.Form(isStructured: true))
        #expect(
            headers(structured) == ["content-type": "application/cloudevents+json; charset=utf-8"])
        let string = String(decoding: structured.body, as: UTF8.self)
        #expect(string.hasPrefix("{\"specversion\":\"1.0\",\"id\":\"\(id.string)\",\"source\":"))
        #expect(string.hasSuffix(",\"document\":\"cities/LA\",\"data_base64\":\"\(Base64.encode(binary.body))\"}"))
        let json = try request(
            Self.event(nil, new), type, EventRequest.Form(isStructured: true, isJSON: true))
        #expect(
            String(decoding: json.body, as: UTF8.self).hasSuffix(
                ",\"data\":{\"value\":{\"name\":\"\(Self.name)\",\"fields\":{\"n\":{\"integerValue\":\"2\"}},"
                    + "\"createTime\":\"2025-11-22T19:17:22.682316Z\",\"updateTime\":\"2025-11-22T19:17:23.279643Z\"}}}"
            ))
    }

    /// Firebase's functions emulator takes the name out of the object; Node's SDK takes a string only.
    @Test(arguments: [false, true]) func theLegacyFormIsNested(isEmulated: Bool) throws {
        let type = "providers/cloud.firestore/eventTypes/document.update"
        let request = try request(Self.event(old, new), type, EventRequest.Form(isEmulated: isEmulated))
        let resource =
            isEmulated
            ? "{\"name\":\"\(Self.name)\",\"service\":\"firestore.googleapis.com\"}" : "\"\(Self.name)\""
        #expect(headers(request) == ["content-type": "application/json"])
        let times = "\"createTime\":\"2025-11-22T19:17:22.682316Z\",\"updateTime\":\"2025-11-22T19:17:2"
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == "{\"data\":{\"value\":{\"name\":\"\(Self.name)\",\"fields\":{\"n\":{\"integerValue\":\"2\"}},\(times)3.279643Z\"},"
                + "\"oldValue\":{\"name\":\"\(Self.name)\",\"fields\":{\"n\":{\"integerValue\":\"1\"}},\(times)2.682316Z\"},"
                + "\"updateMask\":{\"fieldPaths\":[\"n\"]}},\"context\":{\"eventId\":\"\(id.string)\","
                + "\"timestamp\":\"2025-11-22T19:17:23.279643Z\",\"eventType\":\"\(type)\","
                + "\"resource\":\(resource)}}")
        let created = try self.request(Self.event(nil, new), "providers/cloud.firestore/eventTypes/document.create")
        #expect(String(decoding: created.body, as: UTF8.self).contains("},\"updateMask\":{}},\"context\""))
        let deleted = try self.request(Self.event(old, nil), "providers/cloud.firestore/eventTypes/document.write")
        #expect(String(decoding: deleted.body, as: UTF8.self).hasPrefix("{\"data\":{\"oldValue\":{"))
    }

    @Test(arguments: [
        (EventAuthor.user(id: "u1", provider: "password", claims: "{}"), "unknown", "u1"),
        (.administrator(name: "owner"), "service_account", "owner"), (.nobody, "unauthenticated", ""),
        (.system, "system", ""),
    ])
    func theAuthorIsIncludedOnlyWhereItIsAskedFor(author: EventAuthor, kind: String, id: String) throws {
        let event = Self.event(nil, new, author: author)
        let headers = headers(try request(event, "google.cloud.firestore.document.v1.created.withAuthContext"))
        #expect(headers["ce-authtype"] == kind && headers["ce-authid"] == id)
        #expect(headers["ce-type"] == "google.cloud.firestore.document.v1.created.withAuthContext")
        #expect(try self.headers(request(event, "google.cloud.firestore.document.v1.created"))["ce-authtype"] == nil)
    }

    @Test func namesInHeadersAreRawButForControlBytes() throws {
        let event = DocumentEvent(
            database: DatabaseName(project: "P"), path: "c/hél\u{1}\r\n\u{7f}o", commitTime: Self.updated, before: nil,
            after: new, author: .nobody)
        let headers = headers(try request(event, "google.cloud.firestore.document.v1.created"))
        #expect(headers["ce-document"] == "c/hél%01%0D%0A%7Fo")
    }

    /// Spaces at the ends of a header's value don't arrive: the function would take the document for another one.
    @Test(arguments: [("c/alice ", "c/alice%20"), ("c/ a b  ", "c/ a b%20%20"), ("c/ ", "c/%20")])
    func spacesAtTheEndsOfAHeaderAreEncoded(path: String, value: String) throws {
        let event = DocumentEvent(
            database: DatabaseName(project: "P"), path: path, commitTime: Self.updated, before: nil, after: new,
            author: .user(id: " u ", provider: "password", claims: "{}"))
        let headers = headers(try request(event, "google.cloud.firestore.document.v1.created.withAuthContext"))
        #expect(headers["ce-document"] == value && headers["ce-authid"] == "%20u%20")
    }

    // MARK: The mask

    @Test func theMaskDescendsIntoMaps() throws {
        let before = Self.map([
            ("a.b", .integer(1)), ("list", .array([.integer(1)])), ("same", .string("x")), ("gone", .null),
            ("m", .map(Self.map([("x", .integer(1)), ("y", .map(Self.map([("z", .integer(1))]))), ("s", .null)]))),
            ("v", .vector([1])), ("t", .map(Self.map([("a", .integer(1))]))),
        ])
        let after = Self.map([
            ("a.b", .integer(2)), ("list", .array([.integer(2)])), ("same", .string("x")), ("new", .null),
            (
                "m",
                .map(
                    Self.map([
                        ("x", .double(1)), ("y", .map(Self.map([("z", .integer(2)), ("w w", .null)]))), ("s", .null),
                    ]))
            ),
            ("v", .vector([2])), ("t", .string("no map")),
        ])
        #expect(
            try UpdateMask.paths(FieldsCodec.encode(before), FieldsCodec.encode(after)) == [
                "`a.b`", "gone", "list", "m.x", "m.y.`w w`", "m.y.z", "new", "t", "v",
            ])
        #expect(try UpdateMask.paths(FieldsCodec.encode(before), FieldsCodec.encode(before)).isEmpty)
        #expect(throws: Status.self) { try UpdateMask.paths([0x12, 9, 1], FieldsCodec.encode(after)) }
    }

    // MARK: Ids

    @Test func idsAreTheSameForLifeAndDifferForEachTrigger() {
        func id(_ version: Int64, _ incarnation: Int64, _ subject: String, _ trigger: String) -> String {
            EventID(version: version, incarnation: incarnation, subject: Array(subject.utf8), trigger: trigger).string
        }
        #expect(id(1, 2, "a", "t") == "0000000000000001-e5fd953a248a2b5a-2961ebef")
        let ids = [id(1, 2, "a", "t"), id(2, 2, "a", "t"), id(1, 3, "a", "t"), id(1, 2, "b", "t"), id(1, 2, "a", "u")]
        #expect(Set(ids).count == ids.count)
        #expect(ids.allSatisfy { $0.utf8.count == 42 })
        #expect(id(9, 1, "z", "t") < id(10, 1, "a", "t"))
    }
}
