import HearthModel
import HearthWire

/// A document outside of a database.
package struct ExportedDocument: Sendable, Equatable {
    /// The database that it comes from; nil when its source does not say.
    package var database: DatabaseName?
    /// The path below the database: `cities/LA`.
    package var path: String
    /// The entries of Document.fields in canonical order: see `FieldsCodec`.
    package var fields: [UInt8]

    package init(database: DatabaseName? = nil, path: String, fields: [UInt8]) {
        self.database = database
        self.path = path
        self.fields = fields
    }

    /// The id of the collection that the document is in.
    package var collectionID: Substring {
        let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return segments.count < 2 ? "" : Substring(segments[segments.count - 2])
    }

    /// Checks all that a database checks of a document before it is written: its name, its fields, its size.
    /// - Throws: INVALID_ARGUMENT with the server's message.
    package func validate() throws(Status) { _ = try checked(in: database ?? DatabaseName(project: "p")) }

    /// The same for a document of a database.
    /// - Returns: what the database stores.
    package func checked(in database: DatabaseName) throws(Status) -> (name: ResourceName, fields: MapValue) {
        let name = try ResourceName(document: database.documentsRoot + "/" + path)
        let fields: MapValue
        do throws(Status) {
            fields = try FieldsCodec.decode(self.fields)
        } catch {
            throw .invalidArgument(error.message)
        }
        try ValueValidation.validate(fields)
        let size = StorageSize.ofDocument(name.path, fields)
        if size > Limits.documentSizeBytesMax {
            throw .invalidArgument(
                "Its size of \(size) bytes exceeds the maximum allowed size of \(Limits.documentSizeBytesMax) bytes.")
        }
        return (name, fields)
    }
}
