import HearthModel
import HearthWire

/// The name of a collection group: `projects/P/databases/D/collectionGroups/G`.
struct CollectionGroupName: Hashable {
    var database: DatabaseName
    /// `-` for all, in lists; `__default__` for the inherited settings.
    var collectionID: String

    static let all = "-"
    static let defaults = "__default__"

    var string: String { "\(database.string)/collectionGroups/\(collectionID)" }

    init(database: DatabaseName, collectionID: String) {
        self.database = database
        self.collectionID = collectionID
    }

    init(parsing string: String) throws(Status) {
        let (name, rest) = try Self.split(string)
        guard rest.isEmpty else { throw Self.malformed(string) }
        self = name
    }

    /// Splits the name and the segments after it.
    fileprivate static func split(_ string: String) throws(Status) -> (CollectionGroupName, rest: [String]) {
        let segments = string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        guard segments.count >= 6, segments[0] == "projects", segments[2] == "databases",
            segments[4] == "collectionGroups", !segments[1].isEmpty, !segments[3].isEmpty
        else { throw malformed(string) }
        let collectionID = segments[5]
        if collectionID != all, collectionID != defaults { try ResourceName.validate(collectionID: collectionID) }
        let database = DatabaseName(project: segments[1], database: segments[3])
        return (CollectionGroupName(database: database, collectionID: collectionID), Array(segments[6...]))
    }

    private static func malformed(_ string: String) -> Status {
        .invalidArgument(
            "Invalid name \"\(string)\": expected projects/{project}/databases/{database}/collectionGroups/{collection}."
        )
    }

    /// Fails unless the name is of one group.
    func checkSingle() throws(Status) {
        if collectionID == Self.all {
            throw .invalidArgument("\"-\" means all collection groups and is only allowed in lists.")
        }
    }
}

/// The name of an index: `…/collectionGroups/G/indexes/ID`.
struct IndexName {
    var group: CollectionGroupName
    var id: UInt32

    init(group: CollectionGroupName, id: UInt32) {
        self.group = group
        self.id = id
    }

    /// - Throws: NOT_FOUND for an id that was never assigned.
    init(parsing string: String) throws(Status) {
        let (group, rest) = try CollectionGroupName.split(string)
        guard rest.count == 2, rest[0] == "indexes" else {
            throw .invalidArgument("Invalid index name \"\(string)\".")
        }
        guard let id = Self.decode(rest[1]) else { throw Self.notFound(string) }
        self.group = group
        self.id = id
    }

    var string: String { "\(group.string)/indexes/\(Self.encode(id))" }

    static func notFound(_ string: String) -> Status { .notFound("Index \"\(string)\" not found.") }

    /// Ids are opaque, in the format of Google's service: a protobuf with one number, as base64.
    static func encode(_ id: UInt32) -> String {
        var writer = ProtobufWriter()
        writer.varint(8)
        writer.varint(UInt64(id) << 28)
        return Base64.encodeURLSafe(writer.bytes)
    }

    static func decode(_ string: String) -> UInt32? {
        guard let bytes = Base64.decode(string), bytes.first == 8 else { return nil }
        var number: UInt64 = 0
        for (index, byte) in bytes.dropFirst().prefix(10).enumerated() {
            number |= UInt64(byte & 0x7F) << UInt64(7 * index)
        }
        let id = UInt32(truncatingIfNeeded: number >> 28)
        return encode(id) == string ? id : nil
    }
}

/// The name of a field: `…/collectionGroups/G/fields/PATH`.
struct FieldName {
    var group: CollectionGroupName
    /// Nil for `*`, all fields of the group.
    var path: FieldPath?

    init(group: CollectionGroupName, path: FieldPath?) {
        self.group = group
        self.path = path
    }

    init(parsing string: String) throws(Status) {
        let (group, rest) = try CollectionGroupName.split(string)
        guard rest.count >= 2, rest[0] == "fields" else { throw .invalidArgument("Invalid field name \"\(string)\".") }
        self.group = group
        // A quoted field may contain a slash.
        let path = rest[1...].joined(separator: "/")
        if path != "*" {
            let parsed = try FieldPath(parsing: path)
            if parsed.isDocumentName { throw .invalidArgument("__name__ can't be configured.") }
            self.path = parsed
        }
    }

    static func defaults(of database: DatabaseName) -> FieldName {
        FieldName(
            group: CollectionGroupName(database: database, collectionID: CollectionGroupName.defaults), path: nil)
    }

    var isDefaults: Bool { group.collectionID == CollectionGroupName.defaults && path == nil }

    var string: String { "\(group.string)/fields/\(path?.string ?? "*")" }
}
