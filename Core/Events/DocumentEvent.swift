import HearthModel
import HearthWire

/// A document's change by a commit, as events of Cloud Firestore describe it.
package struct DocumentEvent: Sendable {
    package let database: DatabaseName
    /// Below `documents/`.
    package let path: String
    package let commitTime: Timestamp
    package let before: EncodedDocument?
    package let after: EncodedDocument?
    package let author: EventAuthor

    /// Nil when there is no event: nothing was there before or after, or the document was not updated.
    package init?(
        database: DatabaseName, path: String, commitTime: Timestamp, before: EncodedDocument?, after: EncodedDocument?,
        author: EventAuthor
    ) {
        guard before?.updateTime != after?.updateTime else { return nil }
        self.database = database
        self.path = path
        self.commitTime = commitTime
        self.before = before
        self.after = after
        self.author = author
    }

    package var kind: ChangeKind { before == nil ? .created : after == nil ? .deleted : .updated }

    /// The paths of what differs, of an update; empty otherwise.
    /// - Throws: DATA_LOSS when stored bytes are malformed.
    package func mask() throws(Status) -> [String] {
        guard let before, let after else { return [] }
        return try UpdateMask.paths(before.fields, after.fields)
    }

    /// google.events.cloud.firestore.v1.DocumentEventData in binary form. Its documents and values have the same field
    /// numbers as those of google.firestore.v1.
    /// - Throws: DATA_LOSS when stored bytes are malformed.
    package func protobuf() throws(Status) -> [UInt8] {
        var writer = ProtobufWriter()
        for (number, document) in [(UInt32(1), after), (2, before)] {
            guard let document else { continue }
            writer.tag(number, 2)
            let start = writer.beginLength()
            writer.document(document)
            writer.endLength(start)
        }
        if kind == .updated {
            writer.tag(3, 2)
            let start = writer.beginLength()
            for path in try mask() {
                writer.tag(1, 2)
                writer.string(path)
            }
            writer.endLength(start)
        }
        return writer.bytes
    }

    /// The same as proto3 JSON.
    /// - Parameter hasMask: whether there is an `updateMask` in every event, as in the legacy form.
    /// - Throws: DATA_LOSS when stored bytes are malformed.
    package func json(hasMask: Bool) throws(Status) -> [UInt8] {
        var writer = JSONWriter()
        var separator: StaticString = "{"
        for (name, document) in [("value" as StaticString, after), ("oldValue", before)] {
            guard let document else { continue }
            writer.raw(separator)
            separator = ","
            writer.raw("\"")
            writer.raw(name)
            writer.raw("\":")
            try writer.document(document)
        }
        if hasMask || kind == .updated {
            writer.raw(",\"updateMask\":")
            writer.fieldMask(try mask())
        }
        writer.raw("}")
        return writer.bytes
    }
}

extension JSONWriter {
    /// `{"fieldPaths": […]}`, or `{}` without any.
    fileprivate mutating func fieldMask(_ paths: [String]) {
        if paths.isEmpty { return raw("{}") }
        var separator: StaticString = "{\"fieldPaths\":["
        for path in paths {
            raw(separator)
            separator = ","
            string(path)
        }
        raw("]}")
    }
}
