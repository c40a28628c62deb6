import HearthModel

/// A document at rest: its fields stay in wire form and are spliced into answers as they are.
public struct EncodedDocument: Sendable {
    /// The full name.
    public var name: String
    /// The entries of Document.fields in canonical order: see `FieldsCodec`.
    public var fields: [UInt8]
    public var createTime: Timestamp?
    public var updateTime: Timestamp?

    public init(name: String, fields: [UInt8] = [], createTime: Timestamp? = nil, updateTime: Timestamp? = nil) {
        self.name = name
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }

    public init(_ document: Document) {
        self.init(
            name: document.name, fields: FieldsCodec.encode(document.fields), createTime: document.createTime,
            updateTime: document.updateTime)
    }

    /// From a received message.
    /// - Throws: INVALID_ARGUMENT when a time is out of range.
    public init(_ message: DocumentMessage) throws(Status) {
        self.init(try message.document())
    }

    /// The document as a value tree.
    /// - Throws: DATA_LOSS when the bytes are no fields.
    public func document() throws(Status) -> Document {
        Document(name: name, fields: try FieldsCodec.decode(fields), createTime: createTime, updateTime: updateTime)
    }

    /// google.firestore.v1.Document in the binary form.
    public func protobuf() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.reserve(writer.size(of: self))
        writer.document(self)
        return writer.bytes
    }

    /// google.firestore.v1.Document as JSON.
    /// - Throws: DATA_LOSS when the bytes are no fields.
    public func json() throws(Status) -> [UInt8] {
        var writer = JSONWriter()
        try writer.document(self)
        return writer.bytes
    }
}

extension DocumentMessage {
    public init(_ document: Document) {
        self.init(
            name: document.name, fields: document.fields, createTime: document.createTime.map { TimestampMessage($0) },
            updateTime: document.updateTime.map { TimestampMessage($0) })
    }

    /// The document as the model has it; times are floored to microseconds.
    /// - Throws: INVALID_ARGUMENT when a time is out of range.
    public func document() throws(Status) -> Document {
        Document(
            name: name, fields: fields, createTime: try createTime?.timestamp(), updateTime: try updateTime?.timestamp()
        )
    }
}
