import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire

/// Single-field indexes and time-to-live.
extension AdminService {
    func getField(_ request: GetFieldRequest, _ answer: @escaping Answer<FieldMessage>) throws(Status) {
        let name = try FieldName(parsing: request.name)
        try name.group.checkSingle()
        let database = try directory.database(name.group.database)
        answer(.success(FieldView(catalog: database.catalog, database: name.group.database).message(name)))
    }

    func listFields(
        _ request: ListFieldsRequest, _ answer: @escaping Answer<ListFieldsResponse>
    ) throws(Status) {
        let group = try CollectionGroupName(parsing: request.parent)
        let wanted = try FieldFilter(request.filter)
        let catalog = try directory.database(group.database).catalog
        let view = FieldView(catalog: catalog, database: group.database)
        var fields = catalog.overrides
            .filter {
                group.collectionID == CollectionGroupName.all || UTF8Order.equal($0.collectionID, group.collectionID)
            }
            .map { override in
                let owner = CollectionGroupName(database: group.database, collectionID: override.collectionID)
                return view.message(FieldName(group: owner, path: override.path))
            }
            .filter(wanted.matches)
        if wanted.isConfigured { fields.append(view.message(.defaults(of: group.database))) }
        let page = try Self.page(
            fields, key: \.name, size: request.pageSize, token: request.pageToken,
            list: ["fields", request.parent, request.filter])
        answer(.success(ListFieldsResponse(fields: page.items, nextPageToken: page.next)))
    }

    /// The parts of a field that a request changes.
    private struct FieldChange: Sendable {
        /// Nil: unchanged. Some nil: reset to the inherited indexes.
        var indexes: [FieldOverride.Index]??
        /// Nil: unchanged. Some nil: none.
        var timeToLive: FieldOverride.TimeToLive??

        init(_ message: FieldMessage, mask: [String]?, path: FieldPath?) throws(Status) {
            var parts: Set<String> = mask == nil ? ["index", "ttl"] : []
            for name in mask ?? [] {
                switch name {
                case "indexConfig", "index_config", "indexConfig.indexes", "index_config.indexes": parts.insert("index")
                case "ttlConfig", "ttl_config": parts.insert("ttl")
                default: throw .invalidArgument("The update mask may name indexConfig and ttlConfig, not \"\(name)\".")
                }
            }
            if parts.contains("index") {
                if let config = message.indexConfig {
                    indexes = .some(try FieldOverride.indexes(config, path: path))
                } else {
                    indexes = .some(nil)
                }
            }
            guard parts.contains("ttl") else { return }
            if message.ttlConfig != nil, path == nil {
                throw .invalidArgument("Only a single field can be a time-to-live field.")
            }
            timeToLive = .some(
                try message.ttlConfig.map { config throws(Status) in try FieldOverride.TimeToLive(config) })
        }
    }

    func updateField(_ request: UpdateFieldRequest, _ answer: @escaping Answer<OperationMessage>) throws(Status) {
        guard let message = request.field else { throw .invalidArgument("The request has no field.") }
        let name = try FieldName(parsing: message.name)
        try name.group.checkSingle()
        if name.group.collectionID == CollectionGroupName.defaults {
            throw .unimplemented("The automatic indexes of a whole database can't be changed.")
        }
        let change = try FieldChange(message, mask: request.updateMask, path: name.path)
        let database = try directory.database(name.group.database)
        let operations = operations
        let metadata = FieldOperationMetadata(startTime: operations.now, field: name.string, state: .processing)
        let before = Slot<(indexes: [IndexMessage], timeToLive: FieldOverride.TimeToLive?)>()
        let begun = Slot<(operation: OperationTable.Handle, metadata: FieldOperationMetadata)>()
        database.changeCatalog(
            { catalog throws(Status) in
                let view = FieldView(catalog: catalog, database: name.group.database)
                before.value = (view.indexes(name), view.override(of: name)?.timeToLive)
                return (catalog.ownDefinitions, try Self.overrides(catalog, name, change))
            },
            installed: { _ in
                var metadata = metadata
                let view = FieldView(catalog: database.catalog, database: name.group.database)
                metadata.indexConfigDeltas = Self.deltas(from: before.value?.indexes ?? [], to: view.indexes(name))
                metadata.ttlConfigDelta = Self.delta(
                    from: before.value?.timeToLive, to: view.override(of: name)?.timeToLive)
                let operation = operations.begin(
                    database, metadata: { [metadata] in AnyMessage(metadata) }, answer)
                begun.value = (operation, metadata)
            },
            completion: { result in
                guard let (operation, started) = begun.value else {
                    if case .failure(let status) = result { answer(.failure(status)) }
                    return
                }
                var metadata = started
                metadata.endTime = operations.now
                metadata.state = Self.state(of: result)
                let field = FieldView(catalog: database.catalog, database: name.group.database).message(name)
                operation.end(metadata, result.map { field })
            })
    }

    /// The overrides of a catalog with one of them changed.
    private static func overrides(
        _ catalog: IndexCatalog, _ name: FieldName, _ change: FieldChange
    ) throws(Status) -> [FieldOverride] {
        let collectionID = name.group.collectionID
        let position = catalog.overrides.firstIndex {
            $0.path == name.path && UTF8Order.equal($0.collectionID, collectionID)
        }
        let present = position.map { catalog.overrides[$0] }
        let inherited = catalog.inheritedOverride(for: name.path, in: collectionID)
        let view = FieldView(catalog: catalog, database: name.group.database)
        // A field that only has a time-to-live policy keeps the indexes that it inherits.
        var own = present?.indexes
        if let present, present.timeToLive != nil, view.isInherited(present.indexes, inherited) { own = nil }
        if let indexes = change.indexes { own = indexes }
        let timeToLive = change.timeToLive ?? present?.timeToLive
        if timeToLive != nil, let other = timeToLiveField(catalog, collectionID), other != name.path {
            throw .failedPrecondition(
                "The collection group \(collectionID) has a time-to-live field already: \(other).")
        }
        var overrides = catalog.overrides
        if let position { overrides.remove(at: position) }
        if own == nil, timeToLive == nil { return overrides }
        if overrides.count >= Limits.fieldOverridesMax {
            throw .resourceExhausted(
                "A database may have at most \(Limits.fieldOverridesMax) single-field configurations.")
        }
        overrides.append(
            FieldOverride(
                collectionID: collectionID, path: name.path,
                indexes: own ?? inherited?.indexes ?? FieldOverride.automaticIndexes, timeToLive: timeToLive))
        return overrides
    }

    private static func timeToLiveField(_ catalog: IndexCatalog, _ collectionID: String) -> FieldPath? {
        catalog.overrides.first { $0.timeToLive != nil && UTF8Order.equal($0.collectionID, collectionID) }?.path
    }

    private static func deltas(
        from before: [IndexMessage], to after: [IndexMessage]
    ) -> [FieldOperationMetadata.IndexConfigDelta] {
        func key(_ index: IndexMessage) -> [UInt8] {
            var index = index
            index.state = .unspecified
            return index.protobuf()
        }
        let old = Set(before.map(key))
        let new = Set(after.map(key))
        return before.filter { !new.contains(key($0)) }.map { .init(changeType: .remove, index: $0) }
            + after.filter { !old.contains(key($0)) }.map { .init(changeType: .add, index: $0) }
    }
}

extension AdminService {
    private static func delta(
        from before: FieldOverride.TimeToLive?, to after: FieldOverride.TimeToLive?
    ) -> FieldOperationMetadata.TtlConfigDelta? {
        if before == after { return nil }
        guard let after else { return .init(changeType: .remove) }
        return .init(changeType: .add, expirationOffset: after.message.expirationOffset)
    }
}

extension FieldOverride.TimeToLive {
    /// - Throws: INVALID_ARGUMENT for an offset that isn't a number of whole seconds from 0 to 2,147,483,647.
    fileprivate init(_ message: FieldMessage.TtlConfig) throws(Status) {
        let offset = message.expirationOffset ?? DurationMessage()
        guard offset.nanos == 0, 0...Int64(Int32.max) ~= offset.seconds else {
            throw .invalidArgument(
                "The expirationOffset must be a number of whole seconds from 0 to \(Int32.max), such as \"3600s\".")
        }
        self.init(offsetSeconds: offset.seconds)
    }

    /// Without a state.
    var message: FieldMessage.TtlConfig {
        FieldMessage.TtlConfig(expirationOffset: offsetSeconds == 0 ? nil : DurationMessage(seconds: offsetSeconds))
    }
}

extension FieldView {
    /// The indexes of a field, its own or inherited ones, under its own name.
    fileprivate func indexes(_ name: FieldName) -> [IndexMessage] {
        let path = name.path?.string ?? "*"
        return (message(name).indexConfig?.indexes ?? []).map { index in
            var index = index
            for position in index.fields.indices { index.fields[position].fieldPath = path }
            return index
        }
    }
}

/// The supported filters of `ListFields`. Source: ListFieldsRequest.filter.
private struct FieldFilter {
    var isConfigured = false
    var isTimeToLive = false

    init(_ string: String) throws(Status) {
        if string.isEmpty {
            isConfigured = true
            isTimeToLive = true
            return
        }
        for term in string.split(separator: " ").map(String.init) where term != "OR" {
            switch term {
            case "indexConfig.usesAncestorConfig:false", "indexConfig.usesAncestorConfig=false",
                "index_config.uses_ancestor_config:false", "index_config.uses_ancestor_config=false":
                isConfigured = true
            case "ttlConfig:*", "ttl_config:*": isTimeToLive = true
            default:
                throw .invalidArgument(
                    "The filter may be indexConfig.usesAncestorConfig:false, ttlConfig:*, or both joined by OR; "
                        + "found \"\(term)\".")
            }
        }
    }

    func matches(_ field: FieldMessage) -> Bool {
        (isConfigured && field.indexConfig?.usesAncestorConfig != true) || (isTimeToLive && field.ttlConfig != nil)
    }
}
