import HearthJSON
import HearthModel
import HearthTree
import HearthWire

/// The HTTP request that notifies a function of an event: headers and body.
package struct EventRequest: Sendable, Equatable {
    package struct Header: Sendable, Equatable {
        package let name: String
        /// UTF-8 as it is: SDKs read it anew. Control bytes are percent-encoded, and spaces at the ends, which would not arrive.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package let headers: [Header]
    package let body: [UInt8]

    package init(headers: [Header], body: [UInt8]) {
        self.headers = headers
        self.body = body
    }

    /// How a CloudEvent is put into a request.
    package struct Form: Sendable, Equatable {
        /// One JSON object, instead of attributes in headers.
        package var isStructured = false
        /// The data as JSON, instead of protobuf.
        package var isJSON = false
        /// As Firebase's functions emulator takes it from Google's emulators: protobuf in Base64, and the resource of functions
        /// of the first generation as an object.
        package var isEmulated = false

        package init(isStructured: Bool = false, isJSON: Bool = false, isEmulated: Bool = false) {
            self.isStructured = isStructured
            self.isJSON = isJSON
            self.isEmulated = isEmulated
        }
    }

    /// - Parameters:
    ///   - type: the trigger's.
    ///   - location: the name of a region.
    /// - Throws: DATA_LOSS when stored bytes are malformed.
    package init(
        _ event: DocumentEvent, id: EventID, type: EventType, location: String, form: Form
    ) throws(Status) {
        if type.form == .legacy {
            self.init(json: try LegacyEvent.json(event, id: id, type: type, isEmulated: form.isEmulated))
            return
        }
        let attributes = CloudEventAttributes(event, id: id, type: type, location: location, isJSON: form.isJSON)
        let data: CloudEventAttributes.Data =
            form.isJSON ? .json(try event.json(hasMask: false)) : .bytes(try event.protobuf())
        self.init(attributes, data, form)
    }

    /// The same for the Realtime Database, whose data is always JSON.
    package init(
        _ event: TreeEvent, id: EventID, type: EventType, location: String, form: Form,
        captures: [(name: String, value: String)]
    ) {
        if type.form == .legacy {
            self.init(json: LegacyEvent.json(event, id: id, type: type, captures: captures))
            return
        }
        var json = Array(
            "{\"@type\":\"type.googleapis.com/google.events.firebase.database.v1.ReferenceEventData\",".utf8)
        event.appendData(to: &json)
        json.append(UInt8(ascii: "}"))
        self.init(CloudEventAttributes(event, id: id, type: type, location: location), .json(json), form)
    }

    private init(json: [UInt8]) {
        headers = [Header(name: "content-type", value: "application/json")]
        body = json
    }

    private init(_ attributes: CloudEventAttributes, _ data: CloudEventAttributes.Data, _ form: Form) {
        if form.isStructured {
            headers = [Header(name: "content-type", value: "application/cloudevents+json; charset=utf-8")]
            body = attributes.structured(data)
            return
        }
        headers =
            [Header(name: "content-type", value: attributes.contentType)]
            + attributes.all.map { Header(name: "ce-" + $0.name, value: Self.escaped($0.value)) }
        switch data {
        case .json(let json): body = json
        case .bytes(let bytes): body = form.isEmulated ? Array(Base64.encode(bytes).utf8) : bytes
        }
    }

    private static func escaped(_ value: String) -> String {
        let space = UInt8(ascii: " ")
        // Over the memory of the string: several times faster than over its view.
        let hasControl =
            value.utf8.withContiguousStorageIfAvailable { $0.contains(where: isControl) }
            ?? value.utf8.contains(where: isControl)
        if !hasControl, value.utf8.first != space, value.utf8.last != space { return value }
        let inner = (value.utf8.firstIndex { $0 != space } ?? value.endIndex)
        let end = value.utf8.lastIndex { $0 != space } ?? value.startIndex
        var bytes: [UInt8] = []
        for (index, byte) in zip(value.utf8.indices, value.utf8) {
            if isControl(byte) || byte == space && (index < inner || index > end) {
                let digits = String(byte, radix: 16, uppercase: true)
                bytes += Array("%\(byte < 16 ? "0" : "")\(digits)".utf8)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7f }
}

/// The attributes of a CloudEvent.
struct CloudEventAttributes {
    enum Data {
        case json([UInt8])
        case bytes([UInt8])
    }

    let contentType: String
    /// By their names in the specification, in a fixed order.
    private(set) var all: [(name: String, value: String)]

    private static let protobufType = "application/protobuf"
    private static let jsonType = "application/json"
    private static let documentSchema =
        "https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto"

    init(_ event: DocumentEvent, id: EventID, type: EventType, location: String, isJSON: Bool) {
        contentType = isJSON ? Self.jsonType : Self.protobufType
        all = [
            ("specversion", "1.0"), ("id", id.string),
            ("source", "//firestore.googleapis.com/" + event.database.string),
            ("type", type.name), ("subject", "documents/" + event.path),
            ("time", EventTime.string(event.commitTime, digits: 6)), ("datacontenttype", contentType),
            ("dataschema", Self.documentSchema), ("project", event.database.project),
            ("database", event.database.database), ("namespace", "(default)"), ("location", location),
            ("document", event.path),
        ]
        guard type.form == .cloudEventWithAuthor else { return }
        let (kind, id) =
            switch event.author {
            case .user(let id, _, _): ("unknown", id)
            case .administrator(let name): ("service_account", name)
            case .nobody: ("unauthenticated", "")
            case .system: ("system", "")
            case .unknown: ("unknown", "")
            }
        // Python's SDK demands both.
        all += [("authtype", kind), ("authid", id)]
    }

    init(_ event: TreeEvent, id: EventID, type: EventType, location: String) {
        contentType = Self.jsonType
        let path = event.path.string
        all = [
            ("specversion", "1.0"), ("id", id.string),
            (
                "source",
                "//firebasedatabase.googleapis.com/projects/_/locations/\(location)/instances/\(event.namespace)"
            ),
            ("type", type.name), ("subject", "refs/" + path), ("time", EventTime.string(event.time, digits: 3)),
            ("datacontenttype", contentType), ("ref", path), ("instance", event.namespace),
            ("firebasedatabasehost", "firebaseio.com"), ("location", location),
        ]
        switch event.author {
        case .user(let id, _, _): all += [("authtype", "app_user"), ("authid", id)]
        case .administrator: all.append(("authtype", "admin"))
        case .nobody: all.append(("authtype", "unauthenticated"))
        case .system, .unknown: all.append(("authtype", "unknown"))
        }
    }

    /// The event as one JSON object.
    func structured(_ data: Data) -> [UInt8] {
        var json: [UInt8] = []
        for (name, value) in all {
            json.append(UInt8(ascii: json.isEmpty ? "{" : ","))
            JSONTokens.append(name, to: &json)
            json.append(UInt8(ascii: ":"))
            JSONTokens.append(value, to: &json)
        }
        switch data {
        case .json(let bytes):
            json += Array(",\"data\":".utf8)
            json += bytes
        case .bytes(let bytes):
            json += Array(",\"data_base64\":\"".utf8)
            bytes.withUnsafeBytes { Base64.encode($0, into: &json) }
            json.append(UInt8(ascii: "\""))
        }
        json.append(UInt8(ascii: "}"))
        return json
    }
}
