import HearthModel

// HearthWire: the wire forms of Firestore's messages, as protobuf over gRPC and as proto3 JSON over REST and
// WebChannel.
//
// - A message is a struct with plain properties; `WireMessage.visit` lists its fields once, and visitors derive the
//   four codecs from that list (`FieldVisitor`, `BinaryFieldDecoder` and its siblings). Types that are neither a
//   request nor a response have the suffix `Message`, so that they never collide with a type of the model.
// - Values and documents, which are nearly all bytes of the traffic, have handwritten codecs, directly to and from the
//   model (`ValueReading`, `ValueCursor`, `ValueJSONReading`).
// - A stored document stays in wire form (`EncodedDocument`, `FieldsCodec`): it is copied into responses
//   (`ProtobufResponses`) or transcoded (`JSONResponses`); lookups and masks work on the bytes (`FieldsReader`,
//   `Projection`).
// - `Conversion` validates requests and converts them to the model's writes, queries and aggregations.
//
// Invariants: no input crashes a decoder or makes it work more than in proportion to its size (sorting of maps adds a
// logarithm); levels are bounded by `Limits.messageDepthMax`; malformed input is an `INVALID_ARGUMENT` error, or
// `DATA_LOSS` where it was stored; equal values have equal bytes; strings are compared by their UTF-8 bytes.

/// A message of one of the protos: plain stored properties, and one list of its fields that serves every codec.
///
/// `visit` is the only requirement that a message must implement. The four codec methods have default implementations,
/// which only a few well-known types replace. They are requirements nevertheless: each message then brings codecs that
/// are specialised in this module, and a caller in another module reaches them by one witness call instead of through
/// generic code.
package protocol WireMessage: Sendable {
    init()

    /// The proto's full name, as in `@type` and in messages about malformed JSON.
    static var typeName: String { get }

    /// Visits all fields, in the order in which they are written.
    mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure)

    /// Merges the fields up to the decoder's end into this message.
    mutating func decode(_ decoder: inout BinaryFieldDecoder) throws(Status)
    /// Appends the fields, without a length.
    func encode(_ encoder: inout BinaryFieldEncoder)
    /// Merges the JSON value at the decoder's position into this message.
    mutating func decode(_ decoder: inout JSONFieldDecoder) throws(Status)
    /// Appends the message as a JSON value.
    func encode(_ encoder: inout JSONFieldEncoder)
}

extension WireMessage {
    package mutating func decode(_ decoder: inout BinaryFieldDecoder) throws(Status) {
        while !decoder.reader.isAtEnd {
            let tag = try decoder.reader.readTag()
            decoder.tag = tag
            try visit(&decoder)
            if decoder.tag != 0 { try decoder.skip(tag) }
            if decoder.clearsSiblings {
                // The last member of a oneof wins: a second walk through the list clears the others.
                try visit(&decoder)
                decoder.clearsSiblings = false
            }
        }
    }

    package func encode(_ encoder: inout BinaryFieldEncoder) {
        var copy = self
        copy.visit(&encoder)
    }

    package mutating func decode(_ decoder: inout JSONFieldDecoder) throws(Status) {
        try decoder.beginMessage(Self.typeName)
        let outer = decoder.oneofsSeen
        decoder.oneofsSeen = []
        while try decoder.nextMember() {
            try visit(&decoder)
            try decoder.endMember()
        }
        decoder.oneofsSeen = outer
    }

    package func encode(_ encoder: inout JSONFieldEncoder) {
        encoder.beginObject()
        var copy = self
        copy.visit(&encoder)
        encoder.endObject()
    }
}

// MARK: Entry points

extension WireMessage {
    /// Reads the binary form.
    /// - Throws: `INVALID_ARGUMENT` when the bytes are malformed. Unknown fields are skipped.
    package init(protobuf bytes: [UInt8]) throws(Status) {
        self.init()
        try bytes.withBytes { buffer throws(Status) in
            var decoder = BinaryFieldDecoder(buffer)
            try decode(&decoder)
        }
    }

    /// Reads the binary form from borrowed memory.
    package init(protobuf bytes: UnsafeRawBufferPointer) throws(Status) {
        self.init()
        var decoder = BinaryFieldDecoder(bytes)
        try decode(&decoder)
    }

    /// The binary form: fields in the order of the declaration, zero values omitted.
    package func protobuf() -> [UInt8] {
        var encoder = BinaryFieldEncoder()
        encode(&encoder)
        return encoder.writer.bytes
    }

    /// Appends the binary form, without a length.
    package func append(to writer: inout ProtobufWriter) {
        var encoder = BinaryFieldEncoder(writer: ProtobufWriter())
        swap(&encoder.writer, &writer)
        encode(&encoder)
        swap(&encoder.writer, &writer)
    }

    /// Reads proto3 JSON.
    /// - Parameter path: the location of the value in a larger request, in the proto's names (`document`), for error
    ///   messages.
    /// - Throws: `INVALID_ARGUMENT` in Google's wording when it is not JSON, has unknown members, or members of wrong
    ///   types.
    package init(json string: [UInt8], at path: String = "") throws(Status) {
        self.init()
        try string.withBytes { buffer throws(Status) in
            var decoder = try JSONFieldDecoder(buffer)
            do throws(Status) {
                try decode(&decoder)
                try decoder.reader.endDocument()
            } catch {
                throw decoder.status(error, at: path)
            }
        }
    }

    /// Reads proto3 JSON from borrowed memory.
    /// - Throws: `INVALID_ARGUMENT`, like the other initializer.
    package init(json string: UnsafeRawBufferPointer, forms: JSONForms) throws(Status) {
        self.init()
        var decoder = try JSONFieldDecoder(string)
        decoder.takesObjectForms = forms == .bundle
        do throws(Status) {
            try decode(&decoder)
            try decoder.reader.endDocument()
        } catch {
            throw decoder.status(error, at: "")
        }
    }

    package init(json string: String, at path: String = "") throws(Status) {
        try self.init(json: Array(string.utf8), at: path)
    }

    /// The message as proto3 JSON.
    package func json(_ options: JSONOptions = JSONOptions()) -> [UInt8] {
        var encoder = JSONFieldEncoder(options: options)
        encode(&encoder)
        return encoder.writer.bytes
    }
}

/// The forms that a reader of JSON accepts.
package enum JSONForms: Sendable {
    /// Those of proto3 JSON.
    case standard
    /// Also times as `{"seconds": "1", "nanos": 2}` and wrapped numbers as `{"value": 1}`, from builders of bundles
    /// that do not support well-known types.
    case bundle
}

/// How JSON is written.
package struct JSONOptions: Sendable {
    /// Enumerations as numbers, for `$alt=json;enum-encoding=int`.
    package var enumsAsNumbers: Bool

    package init(enumsAsNumbers: Bool = false) {
        self.enumsAsNumbers = enumsAsNumbers
    }
}
