import HearthModel
import HearthWire

/// A line of the change feed, as JSON:
///
///     {"token":"…","type":"updated","time":"2026-11-22T19:17:23.279643Z","document":"projects/P/databases/D/documents/a/b",
///      "before":{"fields":{…},"createTime":"…","updateTime":"…"},"after":{…},"mask":["n"],"last":true}
package struct ChangeLine {
    package enum Kind: String, Sendable {
        case created, updated, deleted
        /// A document as it was when the reader began.
        case snapshot
    }

    package let kind: Kind
    package let token: ChangeToken
    package let time: Timestamp
    package let name: String
    package let before: EncodedDocument?
    package let after: EncodedDocument?
    /// Whether it's the last of a commit, or of a snapshot.
    package let isLast: Bool

    package init(
        _ kind: Kind, token: ChangeToken, time: Timestamp, name: String, before: EncodedDocument?,
        after: EncodedDocument?, isLast: Bool
    ) {
        self.kind = kind
        self.token = token
        self.time = time
        self.name = name
        self.before = before
        self.after = after
        self.isLast = isLast
    }

    /// Appends the line without its end.
    /// - Parameter hasBefore: whether the state before is included.
    /// - Throws: DATA_LOSS when stored bytes are malformed.
    package func append(to writer: inout JSONWriter, hasBefore: Bool) throws(Status) {
        writer.raw("{\"token\":\"")
        writer.raw(token.string)
        writer.raw("\",\"type\":\"")
        writer.raw(kind.rawValue)
        writer.raw("\",\"time\":\"")
        writer.raw(EventTime.string(time, digits: 6))
        writer.raw("\",\"document\":")
        writer.string(name)
        if hasBefore, let before {
            writer.raw(",\"before\":")
            try writer.document(Self.withoutName(before))
        }
        if let after {
            writer.raw(",\"after\":")
            try writer.document(Self.withoutName(after))
        }
        if kind == .updated, let before, let after {
            var separator: StaticString = ",\"mask\":["
            var hasPaths = false
            for path in try UpdateMask.paths(before.fields, after.fields) {
                hasPaths = true
                writer.raw(separator)
                separator = ","
                writer.string(path)
            }
            writer.raw(hasPaths ? "]" : ",\"mask\":[]")
        }
        if isLast { writer.raw(",\"last\":true") }
        writer.raw("}")
    }

    /// A sign of life to a reader that waits, which moves its position past what it does not want.
    /// - Parameter token: nil within a snapshot or a commit, where there is no position.
    package static func heartbeat(_ time: Timestamp, _ token: ChangeToken?) -> [UInt8] {
        let position = token.map { ",\"token\":\"\($0.string)\"" } ?? ""
        return Array("{\"heartbeat\":\"\(EventTime.string(time, digits: 6))\"\(position)}".utf8)
    }

    private static func withoutName(_ document: EncodedDocument) -> EncodedDocument {
        EncodedDocument(
            name: "", fields: document.fields, createTime: document.createTime, updateTime: document.updateTime)
    }
}

/// Where a reader of the change feed goes on: behind a commit of a history.
///
///     mark (1 byte) · incarnation (8) · version (8), as URL-safe Base64
package struct ChangeToken: Sendable, Equatable {
    /// Of the database: another number is another history.
    package let incarnation: Int64
    package let version: Int64
    /// Whether it's of a line within a snapshot: who goes on there begins a new one.
    package let isWithinSnapshot: Bool

    private static let commitMark: UInt8 = 1
    private static let snapshotMark: UInt8 = 2
    private static let sizeBytes = 17

    package init(incarnation: Int64, version: Int64, isWithinSnapshot: Bool = false) {
        self.incarnation = incarnation
        self.version = version
        self.isWithinSnapshot = isWithinSnapshot
    }

    package var string: String {
        var bytes = [isWithinSnapshot ? Self.snapshotMark : Self.commitMark]
        for number in [incarnation, version] { withUnsafeBytes(of: number.bigEndian) { bytes += $0 } }
        return Base64.encodeURLSafe(bytes)
    }

    /// - Throws: INVALID_ARGUMENT for what is no token.
    package init(_ string: String) throws(Status) {
        guard let bytes = Base64.decode(string), bytes.count == Self.sizeBytes,
            bytes[0] == Self.commitMark || bytes[0] == Self.snapshotMark, Base64.encodeURLSafe(bytes) == string
        else { throw .invalidArgument("\"\(string)\" is no token of the change feed.") }
        isWithinSnapshot = bytes[0] == Self.snapshotMark
        (incarnation, version) = bytes.withUnsafeBytes { bytes in
            (
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self)),
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 9, as: Int64.self))
            )
        }
    }
}
