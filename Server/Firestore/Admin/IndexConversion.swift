import HearthRules
import HearthHost
import HearthModel
import HearthDocuments
import HearthWire

extension IndexField {
    /// - Throws: INVALID_ARGUMENT unless exactly one mode of the Standard edition is set.
    init(_ message: IndexMessage.IndexField) throws(Status) {
        let path = try FieldPath(parsing: message.fieldPath)
        if message.searchConfig != nil {
            throw .invalidArgument(
                "The field \(path) has a search index, which belongs to the Enterprise edition.")
        }
        if let order = message.order, order != .unspecified {
            self.init(path: path, kind: order == .descending ? .descending : .ascending)
        } else if let config = message.arrayConfig, config != .unspecified {
            self.init(path: path, kind: .contains)
        } else if let config = message.vectorConfig {
            self.init(path: path, kind: .vector(dimension: Int(config.dimension)))
        } else {
            throw .invalidArgument("The field \(path) needs one of order, arrayConfig and vectorConfig.")
        }
    }

    /// - Parameter path: `*` where the field means all fields.
    func message(path: String? = nil) -> IndexMessage.IndexField {
        var message = IndexMessage.IndexField(fieldPath: path ?? self.path.string)
        switch kind {
        case .ascending: message.order = .ascending
        case .descending: message.order = .descending
        case .contains: message.arrayConfig = .contains
        case .vector(let dimension):
            message.vectorConfig = .init(dimension: Int32(clamping: dimension), flat: .init())
        }
        return message
    }
}

extension IndexDefinition.Scope {
    /// - Parameter unspecified: the scope when the message has none.
    init(_ message: IndexMessage.QueryScope, unspecified: IndexDefinition.Scope?) throws(Status) {
        switch message {
        case .collection: self = .collection
        case .collectionGroup: self = .collectionGroup
        case .unspecified:
            guard let unspecified else { throw .invalidArgument("The index needs a queryScope.") }
            self = unspecified
        default: throw .invalidArgument("The queryScope must be COLLECTION or COLLECTION_GROUP.")
        }
    }

    var message: IndexMessage.QueryScope { self == .collection ? .collection : .collectionGroup }
}

extension IndexDefinition {
    /// The definition in a request to create an index.
    init(creating message: IndexMessage, in collectionID: String) throws(Status) {
        if message.apiScope != .anyApi {
            throw .invalidArgument("The apiScope must be ANY_API in a database of the Standard edition.")
        }
        if message.density != .unspecified, message.density != .sparseAll {
            throw .invalidArgument("The density must be SPARSE_ALL in a database of the Standard edition.")
        }
        if message.unique || message.multikey || message.searchIndexOptions != nil {
            throw .invalidArgument("Unique, multikey and search indexes belong to the Enterprise edition.")
        }
        var fields: [IndexField] = []
        for field in message.fields { fields.append(try IndexField(field)) }
        let scope = try Scope(message.queryScope, unspecified: nil)
        self = try IndexDraft(collectionID: collectionID, scope: scope, fields: fields).definition()
    }

    func message(in database: DatabaseName) -> IndexMessage {
        let group = CollectionGroupName(database: database, collectionID: collectionID)
        return IndexMessage(
            name: IndexName(group: group, id: id).string, queryScope: scope.message,
            fields: shownFields.map { $0.message() }, state: state == .ready ? .ready : .creating, density: .sparseAll)
    }
}

extension FieldOverride {
    /// Reads the indexes of a field's configuration.
    static func indexes(_ config: FieldMessage.IndexConfig, path: FieldPath?) throws(Status) -> [Index] {
        var indexes: [Index] = []
        for message in config.indexes {
            guard message.fields.count == 1, var field = message.fields.first else {
                throw .invalidArgument("Each index of a field must have exactly one field.")
            }
            let expected = path?.string ?? "*"
            // The name may be omitted, and `*` is not a path.
            if field.fieldPath.isEmpty || field.fieldPath == "*" { field.fieldPath = path == nil ? "a" : expected }
            let parsed = try IndexField(field)
            if let path, parsed.path != path {
                throw .invalidArgument("The index is on \(parsed.path), but the field is \(path).")
            }
            if IndexDraft.isVector(parsed) {
                throw .invalidArgument("A vector index is a composite index and can't be configured on a field.")
            }
            let index = Index(
                scope: try IndexDefinition.Scope(message.queryScope, unspecified: .collection), kind: parsed.kind)
            if path == nil, index.scope == .collectionGroup {
                throw .unimplemented("Indexes of collection group scope can only be configured on a single field.")
            }
            if !indexes.contains(index) { indexes.append(index) }
        }
        return indexes
    }
}
