import HearthJSON
import HearthModel
import HearthTree
import HearthWire

/// Events for functions of the first generation.
enum LegacyEvent {
    /// - Parameter isEmulated: with the resource as an object, as Google's emulator sends it to Firebase's functions emulator,
    ///   which takes the name out of it. In the service it is that name; Node's SDK takes the object for an existing document.
    static func json(
        _ event: DocumentEvent, id: EventID, type: EventType, isEmulated: Bool
    ) throws(Status) -> [UInt8] {
        var json = Array("{\"data\":".utf8)
        json += try event.json(hasMask: true)
        json += Array(",\"context\":{".utf8)
        append("eventId", id.string, to: &json, isFirst: true)
        append("timestamp", EventTime.string(event.commitTime, digits: 6), to: &json)
        append("eventType", type.name, to: &json)
        let name = event.database.string + "/documents/" + event.path
        if isEmulated {
            json += Array(",\"resource\":{".utf8)
            append("name", name, to: &json, isFirst: true)
            append("service", "firestore.googleapis.com", to: &json)
            json.append(UInt8(ascii: "}"))
        } else {
            append("resource", name, to: &json)
        }
        json += Array("}}".utf8)
        return json
    }

    static func json(
        _ event: TreeEvent, id: EventID, type: EventType, captures: [(name: String, value: String)]
    ) -> [UInt8] {
        var json = Array("{".utf8)
        append("eventType", type.name, to: &json, isFirst: true)
        append("eventId", id.string, to: &json)
        append("timestamp", EventTime.string(event.time, digits: 3), to: &json)
        append("resource", "projects/_/instances/\(event.namespace)/refs/\(event.path.string)", to: &json)
        append("domain", "firebaseio.com", to: &json)
        json += Array(",\"params\":{".utf8)
        for (index, capture) in captures.enumerated() {
            append(capture.name, capture.value, to: &json, isFirst: index == 0)
        }
        json += Array("},\"auth\":".utf8)
        append(event.author, to: &json)
        json += Array(",\"data\":{".utf8)
        event.appendData(to: &json)
        json += Array("}}".utf8)
        return json
    }

    private static func append(_ author: EventAuthor, to json: inout [UInt8]) {
        switch author {
        case .administrator, .system, .unknown: json += Array("{\"admin\":true}".utf8)
        case .nobody: json += Array("{\"admin\":false}".utf8)
        case .user(let id, let provider, let claims):
            json += Array("{\"admin\":false,\"variable\":{".utf8)
            append("uid", id, to: &json, isFirst: true)
            append("provider", provider, to: &json)
            json += Array(",\"token\":\(claims)}}".utf8)
        }
    }

    private static func append(_ name: String, _ value: String, to json: inout [UInt8], isFirst: Bool = false) {
        if !isFirst { json.append(UInt8(ascii: ",")) }
        JSONTokens.append(name, to: &json)
        json.append(UInt8(ascii: ":"))
        JSONTokens.append(value, to: &json)
    }
}
