import HearthModel
import HearthWire

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
