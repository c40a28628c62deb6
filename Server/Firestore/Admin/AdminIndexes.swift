import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire

/// Composite indexes.
extension AdminService {
    package func createIndex(_ request: CreateIndexRequest, _ answer: @escaping Answer<OperationMessage>) throws(Status)
    {
        let group = try CollectionGroupName(parsing: request.parent)
        try group.checkSingle()
        guard let message = request.index else { throw .invalidArgument("The request has no index.") }
        let definition = try IndexDefinition(creating: message, in: group.collectionID)
        let database = try directory.database(group.database)
        let operations = operations
        let start = operations.now
        let begun = Slot<(operation: OperationTable.Handle, definition: IndexDefinition)>()
        database.changeCatalog(
            { catalog throws(Status) in
                if catalog.definitions.contains(where: { $0.isSame(as: definition) }) {
                    throw Status(.alreadyExists, "index already exists")
                }
                let own = catalog.ownDefinitions
                if own.count >= Limits.compositeIndexesMax {
                    throw .resourceExhausted(
                        "A database may have at most \(Limits.compositeIndexesMax) composite indexes.")
                }
                return (own + [definition], catalog.overrides)
            },
            installed: { added in
                guard let created = added.first(where: { $0.isSame(as: definition) }) else { return }
                let shown = created.message(in: group.database)
                let metadata = IndexOperationMetadata(startTime: start, index: shown.name, state: .processing)
                let operation = operations.begin(
                    database, metadata: { AnyMessage(metadata) },
                    cancel: { Self.remove(created, from: database) { _ in } }, answer)
                begun.value = (operation, created)
            },
            completion: { result in
                guard let (operation, created) = begun.value else {
                    if case .failure(let status) = result { answer(.failure(status)) }
                    return
                }
                var metadata = IndexOperationMetadata(
                    startTime: start, endTime: operations.now, index: created.message(in: group.database).name)
                metadata.state = Self.state(of: result)
                operation.end(
                    metadata,
                    result.map { _ in
                        var ready = created
                        ready.state = .ready
                        return ready.message(in: group.database)
                    })
            })
    }

    static func state(of result: Result<Void, Status>) -> OperationState {
        switch result {
        case .success: .successful
        case .failure(let status): status.code == .cancelled ? .cancelled : .failed
        }
    }

    func listIndexes(
        _ request: ListIndexesRequest, _ answer: @escaping Answer<ListIndexesResponse>
    ) throws(Status) {
        let group = try CollectionGroupName(parsing: request.parent)
        if !request.filter.isEmpty { throw .invalidArgument("Filters on indexes are not supported.") }
        let definitions = try directory.database(group.database).catalog.ownDefinitions.filter {
            group.collectionID == CollectionGroupName.all || UTF8Order.equal($0.collectionID, group.collectionID)
        }
        let page = try Self.page(
            definitions.map { $0.message(in: group.database) }, key: \.name, size: request.pageSize,
            token: request.pageToken, list: ["indexes", request.parent])
        answer(.success(ListIndexesResponse(indexes: page.items, nextPageToken: page.next)))
    }

    func getIndex(_ request: GetIndexRequest, _ answer: @escaping Answer<IndexMessage>) throws(Status) {
        let name = try IndexName(parsing: request.name)
        let database = try directory.database(name.group.database)
        answer(.success(try Self.find(name, in: database.catalog).message(in: name.group.database)))
    }

    private static func find(_ name: IndexName, in catalog: IndexCatalog) throws(Status) -> IndexDefinition {
        let found = catalog.ownDefinitions.first {
            $0.id == name.id && UTF8Order.equal($0.collectionID, name.group.collectionID)
        }
        guard let found else { throw IndexName.notFound(name.string) }
        return found
    }

    func deleteIndex(_ request: DeleteIndexRequest, _ answer: @escaping Answer<EmptyMessage>) throws(Status) {
        let name = try IndexName(parsing: request.name)
        let database = try directory.database(name.group.database)
        Self.remove(try Self.find(name, in: database.catalog), from: database) { answer($0.map { EmptyMessage() }) }
    }

    static func remove(
        _ definition: IndexDefinition, from database: Database,
        _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        database.changeCatalog(
            { catalog in (catalog.ownDefinitions.filter { $0.id != definition.id }, catalog.overrides) },
            completion: completion)
    }
}
