import HearthModel

/// The fields of a document in the form in which they are stored and sent: the entries of Document.fields, in sequence,
/// each with its tag (field 2), sorted by the UTF-8 bytes of their names.
///
/// The form is canonical: equal fields have equal bytes. These bytes between a document's name and its times form a
/// valid google.firestore.v1.Document.
package enum FieldsCodec {
    /// The tag of an entry of Document.fields.
    static let entryTag: UInt8 = 2 << 3 | 2

    package static func encode(_ fields: MapValue) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.fields(fields, tag: entryTag)
        return writer.bytes
    }

    /// - Throws: `DATA_LOSS` when the bytes are malformed.
    package static func decode(_ bytes: [UInt8]) throws(Status) -> MapValue {
        try bytes.withBytes { buffer throws(Status) in try decode(buffer) }
    }

    package static func decode(_ bytes: UnsafeRawBufferPointer) throws(Status) -> MapValue {
        do throws(Status) {
            var reader = ProtobufReader(bytes)
            var fields = MapBuilder()
            try reader.readMap(tag: UInt32(entryTag), depth: 1, into: &fields)
            return fields.take()
        } catch {
            throw damaged(error)
        }
    }

    /// The error for stored bytes that cannot be read: the caller is not at fault.
    static func damaged(_ error: Status) -> Status {
        Status(.dataLoss, "A stored document is damaged. \(error.message)")
    }
}

extension [UInt8] {
    /// `withUnsafeBytes` for bodies that throw `Status`.
    @inline(__always)
    package func withBytes<T>(_ body: (UnsafeRawBufferPointer) throws(Status) -> T) throws(Status) -> T {
        let result = withUnsafeBytes { buffer -> Result<T, Status> in
            do throws(Status) { return .success(try body(buffer)) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
