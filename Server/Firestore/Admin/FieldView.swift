import HearthModel
import HearthDocuments
import HearthWire

/// A field in the format of the admin API.
struct FieldView {
    let catalog: IndexCatalog
    let database: DatabaseName

    func message(_ name: FieldName) -> FieldMessage {
        let own = override(of: name)
        let inherited = catalog.inheritedOverride(for: name.path, in: name.group.collectionID)
        var message = FieldMessage(name: name.string)
        if let policy = own?.timeToLive {
            message.ttlConfig = policy.message
            message.ttlConfig?.state = isExpiryReady(name) ? .active : .creating
        }
        if let own, !isInherited(own.indexes, inherited) || own.timeToLive == nil {
            message.indexConfig = .init(indexes: own.indexes.map { self.message($0, name) })
            return message
        }
        if name.isDefaults {
            message.indexConfig = .init(indexes: FieldOverride.automaticIndexes.map { self.message($0, name) })
            return message
        }
        var ancestor = FieldName.defaults(of: database)
        if let inherited { ancestor = FieldName(group: name.group, path: inherited.path) }
        let indexes = inherited?.indexes ?? FieldOverride.automaticIndexes
        message.indexConfig = .init(
            indexes: indexes.map { self.message($0, ancestor) }, usesAncestorConfig: true,
            ancestorField: ancestor.string)
        return message
    }

    /// The field's own configuration.
    func override(of name: FieldName) -> FieldOverride? {
        catalog.overrides.first {
            $0.path == name.path && UTF8Order.equal($0.collectionID, name.group.collectionID)
        }
    }

    /// Whether all documents that a policy is for have been looked at.
    private func isExpiryReady(_ name: FieldName) -> Bool {
        catalog.definitions.contains {
            $0.scope == .expiry && UTF8Order.equal($0.collectionID, name.group.collectionID)
                && $0.fields[0].path == name.path && $0.state == .ready
        }
    }

    /// Whether a configuration equals the inherited one.
    func isInherited(_ indexes: [FieldOverride.Index], _ inherited: FieldOverride?) -> Bool {
        Set(indexes) == Set(inherited?.indexes ?? FieldOverride.automaticIndexes)
    }

    func message(_ index: FieldOverride.Index, _ field: FieldName) -> IndexMessage {
        let path = field.path ?? FieldPath("a")
        let shown = IndexField(path: path, kind: index.kind).message(path: field.path == nil ? "*" : nil)
        var state = IndexMessage.State.ready
        if index.scope == .collectionGroup {
            let definition = catalog.definitions.first {
                $0.scope == .collectionGroup && UTF8Order.equal($0.collectionID, field.group.collectionID)
                    && $0.fields == [IndexField(path: path, kind: index.kind)]
            }
            if definition?.state == .creating { state = .creating }
        }
        return IndexMessage(queryScope: index.scope.message, fields: [shown], state: state)
    }
}
