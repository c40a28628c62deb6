import HearthConcurrency
import HearthDocuments
import HearthModel
import HearthWire

/// Deletion of whole collection groups. Source: BulkDeleteDocuments in google/firestore/admin/v1/firestore_admin.proto.
extension AdminService {
    package func bulkDeleteDocuments(
        _ request: BulkDeleteDocumentsRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        let name = try DatabaseName(parsing: request.name)
        if request.collectionIds.isEmpty, request.namespaceIds.isEmpty {
            throw .invalidArgument(
                "The collectionIds and namespaceIds must not both be empty; DeleteDatabase deletes a whole database.")
        }
        let ids = try Self.collectionIDs(request.collectionIds, request.namespaceIds)
        let database = try existing(name)
        // Before the answer: what the client writes behind it stays.
        let deletion = try BulkDelete(database, ids)
        let control = TransferControl()
        try transfers.enter(control, as: .deletion)
        let (operations, start) = (operations, operations.now)
        let metadata: @Sendable (OperationState?) -> BulkDeleteDocumentsMetadata = { ended in
            let progress = control.progress
            return BulkDeleteDocumentsMetadata(
                startTime: start, endTime: ended == nil ? nil : operations.now,
                operationState: ended ?? control.operationState, progressDocuments: progress.documents,
                progressBytes: progress.bytes, collectionIds: request.collectionIds,
                namespaceIds: request.namespaceIds, snapshotTime: TimestampMessage(deletion.readTime))
        }
        run(
            database, control, metadata, { () throws(Status) in try deletion.run(control) },
            response: BulkDeleteDocumentsResponse(), answer)
    }
}

/// One deletion: of the documents that there are when it is made. Those that are created or changed later stay.
///
/// Not a transaction: readers see a part of it. Listeners and triggers get its deletions as any others.
struct BulkDelete: Sendable {
    /// Documents that are looked at in one snapshot.
    private static let stepDocuments = 200

    private let database: Database
    /// Nil for all documents.
    private let collectionIDs: [String]?
    /// Documents of later versions stay.
    private let version: Int64
    let readTime: Timestamp

    /// - Parameter collectionIDs: the collection groups; nil for all documents.
    /// - Throws: UNAVAILABLE when the database can't be read.
    init(_ database: Database, _ collectionIDs: [String]?) throws(Status) {
        self.database = database
        self.collectionIDs = collectionIDs
        let view = try database.view()
        (version, readTime) = (view.version, view.readTime)
    }

    /// Deletes, on the calling thread: not on an event loop, nor on one of the workers.
    /// - Throws: CANCELLED; why a document could not be deleted, with the number of those that are.
    func run(_ control: TransferControl) throws(Status) {
        let estimate = try database.documentCount(of: collectionIDs, control)
        control.update { progress in
            progress.estimatedDocumentCount = estimate
            progress.phase = .processing
        }
        // Who changes or deletes a document meanwhile is not an obstacle.
        let run = CommitRun(database, makesEvents: true, control) { $0.code == .failedPrecondition }
        let rest = Rest(database, collectionIDs, version: version, control)
        do throws(Status) {
            try run.write { () throws(Status) in try rest.next() }
        } catch {
            throw Status(error.code, "\(error.message) \(run.documentCount) documents are deleted.")
        }
        control.update { progress in
            progress.phase = .finalizing
            progress.estimatedDocumentCount = progress.documentCount
            progress.estimatedSizeBytes = progress.sizeBytes
        }
    }

    /// The documents that are still to be deleted; belongs to the deletion's thread.
    private final class Rest {
        private let database: Database
        /// Collection groups; nil for all documents.
        private var groups: ArraySlice<String?>
        /// Documents of later versions stay.
        private let version: Int64
        private let control: TransferControl
        private var position: [UInt8]?
        private var found = Queue<CommitRun.Item>()
        private var count = 0
        private var sizeBytes = 0

        init(_ database: Database, _ collectionIDs: [String]?, version: Int64, _ control: TransferControl) {
            self.database = database
            groups = collectionIDs.map { ArraySlice($0.map(Optional.some)) } ?? [nil]
            self.version = version
            self.control = control
        }

        func next() throws(Status) -> CommitRun.Item? {
            while true {
                if let item = found.popFirst() { return item }
                guard let group = groups.first else { return nil }
                try control.check()
                let view = try database.view()
                let keys = try view.documentKeys(of: group, after: position, limit: BulkDelete.stepDocuments)
                position = keys.last
                if keys.isEmpty { groups.removeFirst() }
                for key in keys { try take(key, view) }
                report()
            }
        }

        private func take(_ key: [UInt8], _ view: ReadView) throws(Status) {
            guard let path = DocumentKey.decode(key), let document = try view.document(key: key),
                document.updateVersion <= version
            else { return }
            let size = key.count + document.fields.count
            count += 1
            sizeBytes += size
            let write = Write(
                document: ResourceName(database: database.name, path: path), operation: .delete,
                precondition: .updateTime(Timestamp(microseconds: document.updateVersion)))
            found.append(CommitRun.Item(write: write, sizeBytes: size, positionBytes: sizeBytes))
        }

        private func report() {
            let (count, size) = (count, sizeBytes)
            control.update { $0.estimate(from: count, sizeBytes: size) }
        }
    }
}
