import HearthEngine
import HearthModel
import HearthWire

/// A document in its stored form: create time, update time, and its fields in wire form.
///
///     create version (8 bytes) · update version (8 bytes) · the `fields` entries of google.firestore.v1.Document
///
/// A version is a commit's time in microseconds since 1970; numbers are big-endian.
package struct StoredDocument: Sendable, Equatable {
    package var createVersion: Int64
    package var updateVersion: Int64
    package var fields: [UInt8]

    package static let headerSizeBytes = 16

    package init(createVersion: Int64, updateVersion: Int64, fields: [UInt8]) {
        self.createVersion = createVersion
        self.updateVersion = updateVersion
        self.fields = fields
    }

    package init(stored bytes: [UInt8]) throws(Status) {
        try self.init(stored: bytes[...])
    }

    package init(stored bytes: ArraySlice<UInt8>) throws(Status) {
        let parsed = bytes.withUnsafeBytes { bytes in Result { () throws(Status) in try Self(stored: bytes) } }
        self = try parsed.get()
    }

    /// - Throws: DATA_LOSS for bytes that are not a stored document.
    package init(stored bytes: UnsafeRawBufferPointer) throws(Status) {
        guard bytes.count >= Self.headerSizeBytes else {
            throw Status(.dataLoss, "A stored document is shorter than its header.")
        }
        createVersion = Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        updateVersion = Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
        fields = [UInt8](UnsafeRawBufferPointer(rebasing: bytes[Self.headerSizeBytes...]))
    }

    package var stored: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    package func append(to bytes: inout [UInt8]) {
        bytes.reserveCapacity(bytes.count + Self.headerSizeBytes + fields.count)
        withUnsafeBytes(of: createVersion.bigEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: updateVersion.bigEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: fields)
    }

    package func encoded(name: String) -> EncodedDocument {
        EncodedDocument(
            name: name, fields: fields, createTime: Timestamp(microseconds: createVersion),
            updateTime: Timestamp(microseconds: updateVersion))
    }
}

extension Snapshot {
    /// The document at a key, split as it is read.
    /// - Throws: DATA_LOSS for bytes that are not a stored document.
    package func document(_ key: [UInt8]) throws(Status) -> StoredDocument? {
        var document: StoredDocument?
        _ = try read(.documents, key) { bytes throws(Status) in document = try StoredDocument(stored: bytes) }
        return document
    }
}
