import HearthModel

/// google.protobuf.Any: a message with the name of its type.
package struct AnyMessage: WireMessage {
    /// `type.googleapis.com/` and the type's full name.
    package var typeURL: String
    /// The message's binary form.
    package var value: [UInt8]

    package init() {
        self.init(typeURL: "", value: [])
    }

    package init(typeURL: String, value: [UInt8]) {
        self.typeURL = typeURL
        self.value = value
    }

    package init<M: WireMessage>(_ message: M) {
        self.init(typeURL: Self.prefix + M.typeName, value: message.protobuf())
    }

    /// The contained message, when it has this type.
    package func unpacked<M: WireMessage>(_ type: M.Type) throws(Status) -> M? {
        guard UTF8Order.equal(typeURL, Self.prefix + M.typeName) else { return nil }
        return try M(protobuf: value)
    }

    private static let prefix = "type.googleapis.com/"

    package static let typeName = "google.protobuf.Any"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "type_url", &typeURL)
        try visitor.bytes(2, "value", &value)
    }

    // MARK: JSON

    /// The types with a JSON form here; others are base64.
    private static let knownTypes: [any WireMessage.Type] = [
        ErrorInfoMessage.self, RetryInfoMessage.self, BadRequestMessage.self, HelpMessage.self,
        LocalizedMessage.self, StatusMessage.self, EmptyMessage.self, StructMessage.self, DatabaseMessage.self,
        IndexMessage.self, FieldMessage.self, IndexOperationMetadata.self, FieldOperationMetadata.self,
        ExportDocumentsMetadata.self, ExportDocumentsResponse.self, ImportDocumentsMetadata.self,
        BulkDeleteDocumentsMetadata.self, BulkDeleteDocumentsResponse.self, CreateDatabaseMetadata.self,
        UpdateDatabaseMetadata.self, DeleteDatabaseMetadata.self, LocationMetadata.self,
    ]

    private static func knownType(_ typeURL: String) -> (any WireMessage.Type)? {
        knownTypes.first { UTF8Order.equal(typeURL, prefix + $0.typeName) }
    }

    /// `{"@type": …}` with the message's members in the same object, in any order.
    package mutating func decode(_ decoder: inout JSONFieldDecoder) throws(Status) {
        let object = try decoder.reader.skipValue()
        var members = try JSONObject(decoder.reader.bytes, object)
        guard let type = try members.take("@type") else {
            throw decoder.fail(.value("type.googleapis.com/\(Self.typeName)", "Missing @type for any field"))
        }
        typeURL = try type.string()
        guard let known = Self.knownType(typeURL) else {
            guard let content = try members.take("value"), let bytes = Base64.decode(try content.string()) else {
                throw decoder.fail(
                    .value("type.googleapis.com/\(Self.typeName)", "Invalid type URL, unknown type: \(typeURL)"))
            }
            value = bytes
            return
        }
        let json = known == StructMessage.self ? try members.take("value")?.bytes ?? Array("{}".utf8) : members.json
        value = try known.init(json: json).protobuf()
    }

    package func encode(_ encoder: inout JSONFieldEncoder) {
        encoder.beginObject()
        encoder.member("@type" as String)
        encoder.writer.string(typeURL)
        if let message = knownMessage(encoder) {
            encoder.anyDepth += 1
            if message is StructMessage {
                encoder.member("value" as StaticString)
                message.encode(&encoder)
            } else {
                message.encodeMembers(&encoder)
            }
            encoder.anyDepth -= 1
        } else if !value.isEmpty {
            encoder.member("value" as StaticString)
            value.withUnsafeBytes { encoder.writer.base64($0) }
        }
        encoder.endObject()
    }

    /// The contained message, if JSON can represent it. Otherwise it stays bytes: its type may be newer than this
    /// program, its bytes damaged, or messages nested too deep.
    private func knownMessage(_ encoder: JSONFieldEncoder) -> (any WireMessage)? {
        guard encoder.anyDepth < Self.depthMax, let type = Self.knownType(typeURL) else { return nil }
        do throws(Status) {
            return try type.init(protobuf: value)
        } catch {
            return nil
        }
    }

    /// Levels of nested messages with a JSON form.
    private static let depthMax = 10
}

extension WireMessage {
    fileprivate func encodeMembers(_ encoder: inout JSONFieldEncoder) {
        var copy = self
        copy.visit(&encoder)
    }
}

/// The members of a JSON object as byte strings, for a message whose type is one of its members.
private struct JSONObject {
    struct Piece {
        var bytes: [UInt8]

        func string() throws(Status) -> String {
            var result = ""
            var failure: Status?
            bytes.withUnsafeBytes { buffer in
                do throws(Status) {
                    var reader = try JSONReader(buffer)
                    result = try reader.readString()
                } catch {
                    failure = error
                }
            }
            if let failure { throw failure }
            return result
        }
    }

    private var members: [(name: String, value: Piece)] = []

    init(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) {
        var reader = try JSONReader(UnsafeRawBufferPointer(rebasing: bytes[range]))
        try reader.openContainer(UInt8(ascii: "{"))
        var isFirst = true
        while let key = try reader.nextMember(&isFirst) {
            let name = try reader.string(key)
            let value = try reader.skipValue()
            members.append((name, Piece(bytes: Array(reader.bytes[value]))))
        }
    }

    mutating func take(_ name: String) throws(Status) -> Piece? {
        guard let index = members.firstIndex(where: { UTF8Order.equal($0.name, name) }) else { return nil }
        return members.remove(at: index).value
    }

    /// The remaining members, as an object.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.byte(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { writer.byte(UInt8(ascii: ",")) }
            writer.string(member.name)
            writer.byte(UInt8(ascii: ":"))
            writer.bytes.append(contentsOf: member.value.bytes)
        }
        writer.byte(UInt8(ascii: "}"))
        return writer.bytes
    }
}
