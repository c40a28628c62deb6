import HearthModel
import HearthWire

/// The error of a query without its index, in the service's words, for `--require-indexes`.
///
/// Source of the messages and links: answers of the service that github.com/t-k/fireemu recorded in September 2026
/// (`conformance/fs-query-index-production.json`). What follows the link, up to a note on inequalities, is Hearth's.
struct MissingIndex: Equatable {
    /// One index that would serve the part of the query that none serves.
    let definition: IndexDefinition
    /// Whether an index that would serve is being built.
    let isBuilding: Bool
    let hasSeveralInequalities: Bool
    /// The indexes that the first field has, which an override of the field has to repeat.
    let otherIndexes: [FieldOverride.Index]

    func status(database: DatabaseName) -> Status {
        if !definition.hasNoVector { return .failedPrecondition(vectorMessage(database)) }
        let page =
            database.database == DatabaseName.defaultDatabase
            ? "firestore/indexes" : "firestore/databases/\(database.database)/indexes"
        let argument = definition.isSingleField ? "create_exemption" : "create_composite"
        let link =
            "https://console.firebase.google.com/v1/r/project/\(database.project)/\(page)?\(argument)="
            + payload(database: database)
        var message = "The query requires \(name)."
        if isBuilding {
            message +=
                definition.isSingleField
                ? " That index is not ready yet." : " That index is currently building and cannot be used yet."
            return .failedPrecondition(message + " See its status here: \(link)")
        }
        message += " You can create it here: \(link) or add to "
        message +=
            definition.isSingleField
            ? "\"fieldOverrides\" of firestore.indexes.json: \(overrideJSON)"
            : "firestore.indexes.json: \(definitionJSON)"
        if hasSeveralInequalities {
            message +=
                " .\nThe query contains range and inequality filters on multiple fields, please refer to the documentation for "
                + "index selection best practices: https://cloud.google.com/firestore/docs/query-data/multiple-range-fields."
        }
        return .failedPrecondition(message)
    }

    private var name: String {
        guard definition.isSingleField else { return "an index" }
        let kind =
            switch definition.fields[0].kind {
            case .descending: "DESC"
            case .contains: "CONTAINS"
            default: "ASC"
            }
        return "a \(definition.scope.rawValue)_\(kind) index for collection \(definition.collectionID) and field "
            + definition.fields[0].path.string
    }

    /// The entry of `indexes` of `firestore.indexes.json` that defines the index.
    private var definitionJSON: String {
        let name = IndexField(path: .documentName, kind: definition.nameDescending ? .descending : .ascending)
        let implied = definition.fields.last?.kind == .descending
        // The name is left out where it has the direction that it has without being listed.
        let fields =
            definition.fields + (definition.fields.isEmpty || definition.nameDescending != implied ? [name] : [])
        let shown = fields.map { "{\"fieldPath\": \(Self.quoted($0.path.string)), \(Self.kind($0.kind))}" }
        return "{\"collectionGroup\": \(Self.quoted(definition.collectionID)), \"queryScope\": "
            + "\"\(definition.scope.rawValue)\", \"fields\": [\(shown.joined(separator: ", "))]}"
    }

    /// The entry of `fieldOverrides` that adds the index of one field to those that it has.
    private var overrideJSON: String {
        let field = definition.fields[0]
        let indexes = otherIndexes + [FieldOverride.Index(scope: definition.scope, kind: field.kind)]
        let shown = indexes.map { "{\"queryScope\": \"\($0.scope.rawValue)\", \(Self.kind($0.kind))}" }
        return "{\"collectionGroup\": \(Self.quoted(definition.collectionID)), \"fieldPath\": "
            + "\(Self.quoted(field.path.string)), \"indexes\": [\(shown.joined(separator: ", "))]}"
    }

    private static func kind(_ kind: IndexField.Kind) -> String {
        switch kind {
        case .ascending: "\"order\": \"ASCENDING\""
        case .descending: "\"order\": \"DESCENDING\""
        case .contains: "\"arrayConfig\": \"CONTAINS\""
        case .vector(let dimension): "\"vectorConfig\": {\"dimension\": \(dimension), \"flat\": {}}"
        }
    }

    private func vectorMessage(_ database: DatabaseName) -> String {
        let fields = definition.fields.map { field in
            let path = field.path.string
            return switch field.kind {
            case .ascending: "--field-config=order=ASCENDING,field-path=\(path)"
            case .descending: "--field-config=order=DESCENDING,field-path=\(path)"
            case .contains: "--field-config=array-config=CONTAINS,field-path=\(path)"
            case .vector(let dimension):
                "--field-config=vector-config='{\"dimension\":\"\(dimension)\",\"flat\": \"{}\"}',field-path=\(path)"
            }
        }
        return
            "Missing vector index configuration. Please create the required index with the following gcloud command: "
            + "gcloud firestore indexes composite create --project=\(database.project) --collection-group="
            + "\(definition.collectionID) --query-scope=\(definition.scope.rawValue) "
            + fields.joined(separator: " ")
            + " or add to firestore.indexes.json: \(definitionJSON)"
    }

    /// A string as JSON, in quotes.
    private static func quoted(_ string: String) -> String {
        var writer = JSONWriter()
        writer.string(string)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// The unpadded base64url form of a google.firestore.admin.v1.Index that describes the missing index.
    private func payload(database: DatabaseName) -> String {
        let name = IndexField(path: .documentName, kind: definition.nameDescending ? .descending : .ascending)
        let group = "\(database.string)/collectionGroups/\(definition.collectionID)"
        let isSingleField = definition.isSingleField
        let message = IndexMessage(
            name: isSingleField ? "\(group)/fields/\(definition.fields[0].path)" : "\(group)/indexes/_",
            queryScope: definition.scope == .collection ? .collection : .collectionGroup,
            fields: (isSingleField ? definition.fields : definition.fields + [name]).map(Self.message))
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
