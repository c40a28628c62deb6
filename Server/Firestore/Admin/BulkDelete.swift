import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire

/// Deletion of whole collection groups.
extension AdminService {
    /// The number of documents that one commit deletes.
    private static let stepDocuments = 200

    package func bulkDeleteDocuments(
        _ request: BulkDeleteDocumentsRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        let name = try DatabaseName(parsing: request.name)
        for id in request.collectionIds { try ResourceName.validate(collectionID: id) }
        if request.namespaceIds.contains(where: { !$0.isEmpty }) {
            throw .invalidArgument("A Firestore database has the default namespace only.")
        }
        let database = try directory.database(name)
        let isCancelled = Slot(false)
        let metadata = BulkDeleteDocumentsMetadata(
            startTime: operations.now, operationState: .processing, collectionIds: request.collectionIds,
            snapshotTime: operations.now)
        let operation = try operations.begin(name, metadata: metadata) { isCancelled.value = true }
        answer(.success(operation))
        let run = BulkDelete(
            service: self, database: database, operation: operation.name, metadata: metadata, isCancelled: isCancelled)
        // Without ids the request deletes all documents.
        let groups = request.collectionIds.isEmpty ? [nil] : request.collectionIds.map(Optional.some)
        run.next(groups[...], after: nil, deleted: 0)
    }

    /// One deletion in progress: in steps, each with its own commit.
    private struct BulkDelete: Sendable {
        let service: AdminService
        let database: Database
        let operation: String
        let metadata: BulkDeleteDocumentsMetadata
        let isCancelled: Slot<Bool>

        func next(_ groups: ArraySlice<String?>, after position: [UInt8]?, deleted: Int) {
            service.background({ end(.failure($0), deleted) }) {
                guard let group = groups.first else { return end(.success(BulkDeleteDocumentsResponse()), deleted) }
                if isCancelled.value == true {
                    return end(.failure(Status(.cancelled, "The operation was cancelled.")), deleted)
                }
                do throws(Status) {
                    let view = try database.view()
                    let keys = try view.documentKeys(of: group, after: position, limit: AdminService.stepDocuments)
                    guard let last = keys.last else { return next(groups.dropFirst(), after: nil, deleted: deleted) }
                    let writes = keys.compactMap(DocumentKey.decode).map { path in
                        Write(document: ResourceName(database: database.name, path: path), operation: .delete)
                    }
                    database.commit(writes) { result in
                        switch result {
                        case .success: next(groups, after: last, deleted: deleted + writes.count)
                        case .failure(let status): end(.failure(status), deleted)
                        }
                    }
                } catch {
                    end(.failure(error), deleted)
                }
            }
        }

        private func end(_ result: Result<BulkDeleteDocumentsResponse, Status>, _ deleted: Int) {
            var metadata = metadata
            metadata.endTime = service.operations.now
            metadata.progressDocuments = ProgressMessage(estimatedWork: Int64(deleted), completedWork: Int64(deleted))
            metadata.operationState = AdminService.state(of: result.map { _ in })
            service.operations.update(operation, in: database.name) { operation in
                operation.metadata = AnyMessage(metadata)
                operation.end(result)
            }
        }
    }
}
