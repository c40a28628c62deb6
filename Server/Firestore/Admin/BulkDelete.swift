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
/// Not a transaction: readers see a part of it. Listeners get its deletions as any others, and so do triggers unless it is that
/// of a path.
struct BulkDelete: Sendable {
    /// Documents that are deleted one after another.
    private enum Part: Sendable {
        case all
        /// The collections with an id.
        case group(String)
        /// Everything below a document, or in and below a collection.
        case below(ResourcePath)
        case document(ResourcePath)

        func keys(_ view: ReadView, after position: [UInt8]?, limit: Int) throws(Status) -> [[UInt8]] {
            switch self {
            case .all: try view.documentKeys(of: nil, after: position, limit: limit)
            case .group(let id): try view.documentKeys(of: id, after: position, limit: limit)
            case .below(let path): try view.documentKeys(below: path, after: position, limit: limit)
            case .document(let path): position == nil ? [DocumentKey.encode(path)] : []
            }
        }
    }

    /// Documents that are looked at in one snapshot.
    private static let stepDocuments = 200

    private let database: Database
    private let parts: [Part]
    private let makesEvents: Bool
    /// Documents of later versions stay.
    private let version: Int64
    let readTime: Timestamp

    /// - Parameter collectionIDs: the collection groups; nil for all documents.
    /// - Throws: UNAVAILABLE when the database can't be read.
    init(_ database: Database, _ collectionIDs: [String]?) throws(Status) {
        try self.init(database, collectionIDs?.map(Part.group) ?? [.all], makesEvents: true)
    }

    /// A document with all that is below it, or a collection with all that is below its documents. Triggers get no events, as
    /// when a database is cleared.
    /// - Throws: UNAVAILABLE when the database can't be read.
    init(_ database: Database, at path: ResourcePath) throws(Status) {
        try self.init(
            database, path.isDocument ? [.below(path), .document(path)] : [.below(path)], makesEvents: false)
    }

    private init(_ database: Database, _ parts: [Part], makesEvents: Bool) throws(Status) {
        self.database = database
        self.parts = parts
        self.makesEvents = makesEvents
        let view = try database.view()
        (version, readTime) = (view.version, view.readTime)
    }

    /// Deletes, on the calling thread: not on an event loop, nor on one of the workers.
    /// - Throws: CANCELLED; why a document could not be deleted, with the number of those that are.
    func run(_ control: TransferControl) throws(Status) {
        let estimate = try count(control)
        control.update { progress in
            progress.estimatedDocumentCount = estimate
            progress.phase = .processing
        }
        // Who changes or deletes a document meanwhile is not an obstacle.
        let run = CommitRun(database, makesEvents: makesEvents, control) { $0.code == .failedPrecondition }
        let rest = Rest(database, parts, version: version, control)
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

    /// How many documents there are about, in steps, so that no snapshot is held for long.
    private func count(_ control: TransferControl) throws(Status) -> Int {
        var count = 0
        for part in parts {
            count += try Database.countInSteps(control) { position, limit throws(Status) in
                try part.keys(try database.view(), after: position, limit: limit)
            }
        }
        return count
    }

    /// The documents that are still to be deleted; belongs to the deletion's thread.
    private final class Rest {
        private let database: Database
        private var parts: ArraySlice<Part>
        /// Documents of later versions stay.
        private let version: Int64
        private let control: TransferControl
        private var position: [UInt8]?
        private var found = Queue<CommitRun.Item>()
        private var count = 0
        private var sizeBytes = 0

        init(_ database: Database, _ parts: [Part], version: Int64, _ control: TransferControl) {
            self.database = database
            self.parts = parts[...]
            self.version = version
            self.control = control
        }

        func next() throws(Status) -> CommitRun.Item? {
            while true {
                if let item = found.popFirst() { return item }
                guard let part = parts.first else { return nil }
                try control.check()
                let view = try database.view()
                let keys = try part.keys(view, after: position, limit: BulkDelete.stepDocuments)
                position = keys.last
                if keys.isEmpty { parts.removeFirst() }
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
