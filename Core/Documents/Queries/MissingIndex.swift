import HearthModel
import HearthWire

/// The error of a query without its index, in production's words, for `--require-indexes`.
enum MissingIndex {
    static func status(_ index: IndexDefinition, database: DatabaseName) -> Status {
        let payload = Self.payload(index, database: database)
        let page =
            database.database == DatabaseName.defaultDatabase
            ? "firestore/indexes" : "firestore/databases/\(database.database)/indexes"
        return .failedPrecondition(
            "The query requires an index. You can create it here: https://console.firebase.google.com/v1/r/project/"
                + "\(database.project)/\(page)?create_composite=\(payload) or add to firestore.indexes.json: "
                + definitionJSON(index))
    }

    /// The entry of `firestore.indexes.json` that defines an index.
    static func definitionJSON(_ index: IndexDefinition) -> String {
        let fields = index.fields.map { field in
            let kind =
                switch field.kind {
                case .ascending: "\"order\": \"ASCENDING\""
                case .descending: "\"order\": \"DESCENDING\""
                case .contains: "\"arrayConfig\": \"CONTAINS\""
                case .vector(let dimension): "\"vectorConfig\": {\"dimension\": \(dimension), \"flat\": {}}"
                }
            return "{\"fieldPath\": \(quoted(field.path.string)), \(kind)}"
        }
        return "{\"collectionGroup\": \(quoted(index.collectionID)), \"queryScope\": \"\(index.scope.rawValue)\", "
            + "\"fields\": [\(fields.joined(separator: ", "))]}"
    }

    /// A string as JSON, in quotes.
    private static func quoted(_ string: String) -> String {
        var writer = JSONWriter()
        writer.string(string)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// The unpadded base64url form of a google.firestore.admin.v1.Index that describes the missing index.
    static func payload(_ index: IndexDefinition, database: DatabaseName) -> String {
        let name = IndexField(path: .documentName, kind: index.nameDescending ? .descending : .ascending)
        let message = IndexMessage(
            name: "\(database.string)/collectionGroups/\(index.collectionID)/indexes/_",
            queryScope: index.scope == .collection ? .collection : .collectionGroup,
            fields: (index.fields + [name]).map(message))
        return Base64.encodeURLSafe(message.protobuf())
    }

    private static func message(_ field: IndexField) -> IndexMessage.IndexField {
        switch field.kind {
        case .ascending: .init(fieldPath: field.path.string, order: .ascending)
        case .descending: .init(fieldPath: field.path.string, order: .descending)
        case .contains: .init(fieldPath: field.path.string, arrayConfig: .contains)
        case .vector(let dimension):
            .init(
                fieldPath: field.path.string,
                vectorConfig: .init(dimension: Int32(clamping: dimension), flat: .init()))
        }
    }
}
