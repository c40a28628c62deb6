import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire

/// Deletion of whole collection groups.
extension AdminService {
    package func bulkDeleteDocuments(
        _ request: BulkDeleteDocumentsRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        let name = try DatabaseName(parsing: request.name)
        let ids = try Self.collectionIDs(request.collectionIds, request.namespaceIds)
        let database = try existing(name)
        let control = TransferControl()
        let (operations, start) = (operations, operations.now)
        let metadata: @Sendable (OperationState?) -> BulkDeleteDocumentsMetadata = { ended in
            let progress = control.progress
            return BulkDeleteDocumentsMetadata(
                startTime: start, endTime: ended == nil ? nil : operations.now,
                operationState: ended ?? control.operationState, progressDocuments: progress.documents,
                progressBytes: progress.bytes, collectionIds: request.collectionIds,
                namespaceIds: request.namespaceIds, snapshotTime: start)
        }
        let deletion = BulkDelete(database, ids, control, background: background)
        operations.begin(
            database, metadata: { AnyMessage(metadata(nil)) }, cancel: { control.cancel() }
        ) { begun in
            answer(begun)
            guard case .success(let operation) = begun else { return }
            deletion.run { result in
                operations.handle(operation).end(
                    metadata(Self.state(of: result)), result.map { BulkDeleteDocumentsResponse() })
            }
        }
    }
}

/// One deletion: in steps, each with its own commit.
struct BulkDelete: Sendable {
    /// Documents that one commit deletes, and that one step counts.
    private static let stepDocuments = 200
    private static let countStep = 4096

    private let database: Database
    /// Nil for all documents.
    private let groups: [String?]
    private let control: TransferControl
    private let background: AdminService.Background

    /// - Parameter collectionIDs: the collection groups; nil for all documents.
    init(
        _ database: Database, _ collectionIDs: [String]?, _ control: TransferControl,
        background: @escaping AdminService.Background
    ) {
        self.database = database
        groups = collectionIDs?.map(Optional.some) ?? [nil]
        self.control = control
        self.background = background
    }

    typealias Done = @Sendable (Result<Void, Status>) -> Void

    /// - Parameter done: called once, from any thread.
    func run(_ done: @escaping Done) {
        count(groups[...], after: nil, done)
    }

    private func step(_ done: @escaping Done, _ body: @escaping @Sendable () throws(Status) -> Void) {
        background({ done(.failure($0)) }) {
            do throws(Status) {
                try control.check()
                try body()
            } catch {
                done(.failure(error))
            }
        }
    }

    /// Counts the documents first, for the estimate.
    private func count(_ groups: ArraySlice<String?>, after position: [UInt8]?, _ done: @escaping Done) {
        step(done) { () throws(Status) in
            guard let group = groups.first else {
                control.update { $0.phase = .processing }
                return next(self.groups[...], after: nil, done)
            }
            let keys = try database.view().documentKeys(of: group, after: position, limit: Self.countStep)
            control.update { $0.estimatedDocumentCount += keys.count }
            let isOver = keys.count < Self.countStep
            count(isOver ? groups.dropFirst() : groups, after: isOver ? nil : keys.last, done)
        }
    }

    private func next(_ groups: ArraySlice<String?>, after position: [UInt8]?, _ done: @escaping Done) {
        step(done) { () throws(Status) in
            guard let group = groups.first else {
                control.update { progress in
                    progress.phase = .finalizing
                    progress.estimatedDocumentCount = progress.documentCount
                    progress.estimatedSizeBytes = progress.sizeBytes
                }
                return done(.success(()))
            }
            let view = try database.view()
            let keys = try view.documentKeys(of: group, after: position, limit: Self.stepDocuments)
            guard let last = keys.last else { return next(groups.dropFirst(), after: nil, done) }
            var size = 0
            for key in keys {
                _ = try view.snapshot.read(.documents, key) { size += key.count + $0.count }
            }
            let writes = keys.compactMap(DocumentKey.decode).map { path in
                Write(document: ResourceName(database: database.name, path: path), operation: .delete)
            }
            database.commit(writes) { [size] result in
                switch result {
                case .success:
                    add(writes.count, size)
                    next(groups, after: last, done)
                case .failure(let status): done(.failure(status))
                }
            }
        }
    }

    private func add(_ documents: Int, _ size: Int) {
        control.update { progress in
            progress.documentCount += documents
            progress.sizeBytes += size
            progress.estimatedDocumentCount = max(progress.estimatedDocumentCount, progress.documentCount)
            let share = Double(progress.estimatedDocumentCount) / Double(max(1, progress.documentCount))
            progress.estimatedSizeBytes = Int(Double(progress.sizeBytes) * share)
        }
    }
}
