import HearthModel

/// A stored document: its fields stay in wire form and are copied into responses unchanged.
package struct EncodedDocument: Sendable {
    /// The full name.
    package var name: String
    /// The entries of Document.fields in canonical order: see `FieldsCodec`.
    package var fields: [UInt8]
    package var createTime: Timestamp?
    package var updateTime: Timestamp?

    package init(
        name: String, fields: [UInt8] = [], createTime: Timestamp? = nil, updateTime: Timestamp? = nil
    ) {
        self.name = name
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }

    package init(_ document: Document) {
        self.init(
            name: document.name, fields: FieldsCodec.encode(document.fields), createTime: document.createTime,
            updateTime: document.updateTime)
    }

    /// From a received message.
    /// - Throws: INVALID_ARGUMENT when a time is out of range.
    package init(_ message: DocumentMessage) throws(Status) {
        self.init(try message.document())
    }

    /// The document as a value tree.
    /// - Throws: `DATA_LOSS` when the bytes are malformed.
    package func document() throws(Status) -> Document {
        Document(name: name, fields: try FieldsCodec.decode(fields), createTime: createTime, updateTime: updateTime)
    }

    /// google.firestore.v1.Document in the binary form.
    package func protobuf() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.reserve(writer.size(of: self))
        writer.document(self)
        return writer.bytes
    }

    /// google.firestore.v1.Document as JSON.
    /// - Throws: `DATA_LOSS` when the bytes are malformed.
    package func json() throws(Status) -> [UInt8] {
        var writer = JSONWriter()
        try writer.document(self)
        return writer.bytes
    }
}

extension DocumentMessage {
    package init(_ document: Document) {
        self.init(
            name: document.name, fields: document.fields, createTime: document.createTime.map { TimestampMessage($0) },
            updateTime: document.updateTime.map { TimestampMessage($0) })
    }

    /// The document in the model's form; times are rounded down to microseconds.
    /// - Throws: INVALID_ARGUMENT when a time is out of range.
    package func document() throws(Status) -> Document {
        Document(
            name: name, fields: fields, createTime: try createTime?.timestamp(), updateTime: try updateTime?.timestamp()
        )
    }
}
