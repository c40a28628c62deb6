import HearthModel
import HearthWire

/// The REST bindings of google.firestore.v1: which method a verb and a path mean. Source: the `http` options of
/// google/firestore/v1/firestore.proto.
enum RESTRouter {
    /// A request's method with what its path names.
    enum Route {
        case getDocument(name: String)
        case listDocuments(parent: String, collectionID: String)
        case createDocument(parent: String, collectionID: String)
        case updateDocument(name: String)
        case deleteDocument(name: String)
        /// A method after a colon, on a database's documents or on a parent.
        case custom(method: CustomMethod, database: String, parent: String)
    }

    enum CustomMethod: String, CaseIterable {
        case batchGet, beginTransaction, commit, rollback, batchWrite, executePipeline, write, listen
        case runQuery, runAggregationQuery, partitionQuery, listCollectionIds

        /// Whether the method stands on a parent and not only on the documents' root.
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
    /// - Returns: nil when no binding fits.
    /// - Throws: INVALID_ARGUMENT when a segment can't be decoded, or the name has a wrong number of segments.
    static func route(method: String, path: String) throws(Status) -> Route? {
        guard path.hasPrefix("/v1/") else { return nil }
        var raw = path.dropFirst(4).split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard raw.count >= 5, raw[0] == "projects", raw[2] == "databases" else { return nil }
        var custom: CustomMethod?
        if method == "POST", let last = raw.last, let colon = last.lastIndex(of: ":"),
            let named = CustomMethod(rawValue: String(last[last.index(after: colon)...])),
            raw.count == 5 || (named.takesParent && (raw.count - 5).isMultiple(of: 2))
        {
            custom = named
            raw[raw.count - 1] = String(last[..<colon])
        }
        guard raw[4] == "documents" else { return nil }
        var segments: [String] = []
        for segment in raw {
            guard let decoded = URLText.decode(segment), !decoded.utf8.contains(UInt8(ascii: "/")) else {
                throw .invalidArgument("The path segment \"\(segment)\" can't be decoded.")
            }
            segments.append(decoded)
        }
        let name = segments.joined(separator: "/")
        if let custom {
            return .custom(method: custom, database: segments.prefix(4).joined(separator: "/"), parent: name)
        }
        return try route(method: method, segments: segments, name: name)
    }

    private static func route(method: String, segments: [String], name: String) throws(Status) -> Route? {
        let depth = segments.count - 5
        if depth == 0 { return nil }
        let parent = segments.dropLast().joined(separator: "/")
        switch method {
        case "GET":
            return depth.isMultiple(of: 2)
                ? .getDocument(name: name) : .listDocuments(parent: parent, collectionID: segments.last!)
        case "POST":
            return depth.isMultiple(of: 2) ? nil : .createDocument(parent: parent, collectionID: segments.last!)
        case "PATCH", "DELETE":
            if !depth.isMultiple(of: 2) {
                throw .invalidArgument("Document name \"\(name)\" lacks \"/\" at index \(name.utf8.count).")
            }
            return method == "PATCH" ? .updateDocument(name: name) : .deleteDocument(name: name)
        default: return nil
        }
    }

    /// Parameters of the transport, which no message has.
    static func isSystemParameter(_ name: String) -> Bool {
        if name.hasPrefix("$") { return true }
        return [
            "alt", "prettyPrint", "key", "access_token", "oauth_token", "callback", "fields", "quotaUser", "uploadType",
            "upload_protocol", "userIp",
        ].contains(name)
    }
}
