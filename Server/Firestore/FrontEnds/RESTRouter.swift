import HearthHost
import HearthModel
import HearthWire

/// The REST bindings of google.firestore.v1: the method that a verb and a path select. Source: the `http` options of
/// google/firestore/v1/firestore.proto.
package enum RESTRouter {
    /// A request's method with the names in its path.
    package enum Route {
        case getDocument(name: String)
        case listDocuments(parent: String, collectionID: String)
        case createDocument(parent: String, collectionID: String)
        case updateDocument(name: String)
        case deleteDocument(name: String)
        /// A method after a colon, on a database's documents or on a parent.
        case custom(method: CustomMethod, database: String, parent: String)
    }

    package enum CustomMethod: String, CaseIterable {
        case batchGet, beginTransaction, commit, rollback, batchWrite, executePipeline, write, listen
        case runQuery, runAggregationQuery, partitionQuery, listCollectionIds

        /// Whether the method exists for any parent and not only for the documents' root.
        var takesParent: Bool {
            switch self {
            case .runQuery, .runAggregationQuery, .partitionQuery, .listCollectionIds: true
            default: false
            }
        }

        var isStreaming: Bool {
            switch self {
            case .batchGet, .runQuery, .runAggregationQuery, .executePipeline, .write, .listen: true
            default: false
            }
        }
    }

    /// - Parameter path: still percent-encoded.
    /// - Returns: nil when no binding matches.
    /// - Throws: INVALID_ARGUMENT when a segment cannot be decoded, or the name has a wrong number of segments.
    package static func route(method: String, path: String) throws(Status) -> Route? {
        guard isOfDocuments(path) else { return nil }
        var raw = URLCoding.segments(path).dropFirst(2)
        var custom: CustomMethod?
        if method == "POST", let last = raw.last, let colon = last.utf8.lastIndex(of: UInt8(ascii: ":")),
            let named = CustomMethod(rawValue: String(last[last.utf8.index(after: colon)...])),
            raw.count == 5 || (named.takesParent && (raw.count - 5).isMultiple(of: 2))
        {
            custom = named
            raw[raw.endIndex - 1] = String(last[..<colon])
        }
        guard raw[raw.startIndex + 4] == "documents" else { return nil }
        if path.utf8.contains(UInt8(ascii: "%")) { raw = try decode(raw) }
        let name = raw.joined(separator: "/")
        if let custom {
            return .custom(method: custom, database: raw.prefix(4).joined(separator: "/"), parent: name)
        }
        return try route(method: method, segments: raw, name: name)
    }

    /// Whether a path is `/v1/projects/P/databases/D/documents`, below it, or followed by a method after a colon.
    static func isOfDocuments(_ path: String) -> Bool {
        guard path.utf8.starts(with: "/v1/projects/".utf8) else { return false }
        var rest = path.utf8.dropFirst("/v1/projects/".utf8.count)
        for next in ["databases/", "documents"] {
            guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { return false }
            rest = rest[rest.index(after: slash)...]
            guard rest.starts(with: next.utf8) else { return false }
            rest = rest.dropFirst(next.utf8.count)
        }
        return rest.isEmpty || rest.first == UInt8(ascii: "/") || rest.first == UInt8(ascii: ":")
    }

    private static func decode(_ raw: ArraySlice<String>) throws(Status) -> ArraySlice<String> {
        var segments: ArraySlice<String> = []
        for segment in raw {
            guard let decoded = URLCoding.decode(segment), !decoded.utf8.contains(UInt8(ascii: "/")) else {
                throw .invalidArgument("The path segment \"\(segment)\" can't be decoded.")
            }
            segments.append(decoded)
        }
        return segments
    }

    private static func route(
        method: String, segments: ArraySlice<String>, name: String
    ) throws(Status) -> Route? {
        let depth = segments.count - 5
        if depth == 0 { return nil }
        var collection: (parent: String, id: String) {
            (segments.dropLast().joined(separator: "/"), segments.last ?? "")
        }
        switch method {
        case "GET":
            return depth.isMultiple(of: 2)
                ? .getDocument(name: name) : .listDocuments(parent: collection.parent, collectionID: collection.id)
        case "POST":
            return depth.isMultiple(of: 2)
                ? nil : .createDocument(parent: collection.parent, collectionID: collection.id)
        case "PATCH", "DELETE":
            if !depth.isMultiple(of: 2) {
                throw .invalidArgument("Document name \"\(name)\" lacks \"/\" at index \(name.utf8.count).")
            }
            return method == "PATCH" ? .updateDocument(name: name) : .deleteDocument(name: name)
        default: return nil
        }
    }

    /// Parameters of the transport, which are in no message.
    package static func isSystemParameter(_ name: String) -> Bool {
        if name.hasPrefix("$") { return true }
        return [
            "alt", "prettyPrint", "key", "access_token", "oauth_token", "callback", "fields", "quotaUser", "uploadType",
            "upload_protocol", "userIp",
        ].contains(name)
    }
}
