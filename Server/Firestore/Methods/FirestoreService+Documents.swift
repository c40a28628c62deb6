import HearthHost
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// Methods on single documents.
extension FirestoreService {
    func getDocument(_ request: GetDocumentRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let name = try ResourceName(document: request.name)
            let projection = try request.mask.map { mask throws(Status) in try mask.projection() }
            let consistency = try Self.consistency(transaction: request.transaction, readTime: request.readTime)
            guard
                let database = try self.database(name.database, for: call, again: { self.getDocument(request, call) })
            else { return }
            let judge: ReadJudge = { reader throws(Status) in
                try self.access.get([name.path], call.identity, name.database, reader)
            }
            try read(call, database, consistency, [.document(name.path)], judge: judge) { grant throws(Status) in
                try self.run(call, database, grant.view.isPast ? .unknown : .answer, grant) {
                    view, pace throws(Status) in
                    pace.set(view) { () throws(Status) in try call.cancellation.check() }
                    guard let document = try view.document(name.path) else {
                        throw .notFound("Document \"\(request.name)\" not found.")
                    }
                    let encoded = try Self.encoded(document, name: request.name, projection)
                    return try Self.message(encoded, call.format)
                }
            }
        }
    }

    private func respond(_ call: any ServiceCall, _ document: EncodedDocument) throws(Status) {
        call.respond(try Self.message(document, call.format))
    }

    private static func message(_ document: EncodedDocument, _ format: MessageFormat) throws(Status) -> [UInt8] {
        switch format {
        case .protobuf: document.protobuf()
        case .json: try document.json()
        }
    }

    /// - Parameter sizeBytes: the size of the encoded request.
    func createDocument(_ request: CreateDocumentRequest, sizeBytes: Int, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            try OnceHeader.refuse(on: call)
            let parent = try ResourceName(parent: request.parent)
            try ResourceName.validate(collectionID: request.collectionId)
            if let name = request.document?.name, !name.isEmpty {
                throw .invalidArgument("document.name must not be set")
            }
            if !request.documentId.isEmpty { try ResourceName.validate(documentID: request.documentId) }
            let projection = try request.mask.map { mask throws(Status) in try mask.projection() }
            let collection = parent.path.appending(request.collectionId)
            create(
                request.document?.fields ?? MapValue(), in: collection, id: request.documentId, of: parent.database,
                projection, attempt: 1, sizeBytes: sizeBytes, call)
        }
    }

    /// An existing id that the client chose is an error; a generated one is replaced.
    private func create(
        _ fields: MapValue, in collection: ResourcePath, id: String, of database: DatabaseName,
        _ projection: Projection?,
        attempt: Int, sizeBytes: Int, _ call: any ServiceCall
    ) {
        let name = ResourceName(
            database: database, path: collection.appending(id.isEmpty ? DocumentID.generate() : id))
        answer(call) { () throws(Status) in
            var message = WriteMessage(update: DocumentMessage(name: name.string, fields: fields))
            message.currentDocument = PreconditionMessage(exists: false)
            let write = try message.write(database: database)
            let commitGuard = try access.commitGuard(call.identity, database)
            guard
                let opened = try self.database(
                    database, for: call,
                    again: {
                        self.create(
                            fields, in: collection, id: id, of: database, projection, attempt: attempt,
                            sizeBytes: sizeBytes, call)
                    })
            else { return }
            opened.commit(
                [write], sizeBytes: sizeBytes, guard: commitGuard, requester: call.requester, returning: 0,
                author: call.identity.asAuthor, isWanted: call.cancellation.isWanted
            ) { result in
                call.onLoop {
                    if case .failure(let status) = result, status.code == .alreadyExists, id.isEmpty, attempt < 5 {
                        return self.create(
                            fields, in: collection, id: id, of: database, projection, attempt: attempt + 1,
                            sizeBytes: sizeBytes, call)
                    }
                    self.respondToWrite(call, name, projection, result)
                }
            }
        }
    }

    /// - Parameter sizeBytes: the size of the encoded request.
    func updateDocument(_ request: UpdateDocumentRequest, sizeBytes: Int, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            try OnceHeader.refuse(on: call)
            let name = try ResourceName(document: request.document?.name ?? "")
            let projection = try request.mask.map { mask throws(Status) in try mask.projection() }
            var message = WriteMessage(update: request.document)
            message.updateMask = request.updateMask
            message.currentDocument = request.currentDocument
            let write = try message.write(database: name.database)
            let commitGuard = try access.commitGuard(call.identity, name.database)
            guard
                let database = try self.database(
                    name.database, for: call, again: { self.updateDocument(request, sizeBytes: sizeBytes, call) })
            else { return }
            database.commit(
                [write], sizeBytes: sizeBytes, guard: commitGuard, requester: call.requester, returning: 0,
                author: call.identity.asAuthor, isWanted: call.cancellation.isWanted
            ) { result in
                call.onLoop { self.respondToWrite(call, name, projection, result) }
            }
        }
    }

    /// Responds with the document as the commit wrote it. Nothing is read for that: the write is committed, and the
    /// client would take a failed read for a failed write.
    private func respondToWrite(
        _ call: any ServiceCall, _ name: ResourceName, _ projection: Projection?,
        _ result: Result<CommitOutcome, Status>
    ) {
        answer(call) { () throws(Status) in
            guard let document = try result.get().document else {
                throw .internalError("The commit does not contain the written document.")
            }
            try self.respond(call, try Self.encoded(document, name: name.string, projection))
        }
    }

    /// - Parameter sizeBytes: the size of the encoded request.
    func deleteDocument(_ request: DeleteDocumentRequest, sizeBytes: Int, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            try OnceHeader.refuse(on: call)
            let name = try ResourceName(document: request.name)
            var message = WriteMessage(delete: request.name)
            message.currentDocument = request.currentDocument
            let write = try message.write(database: name.database)
            let commitGuard = try access.commitGuard(call.identity, name.database)
            guard
                let database = try self.database(
                    name.database, for: call, again: { self.deleteDocument(request, sizeBytes: sizeBytes, call) })
            else { return }
            database.commit(
                [write], sizeBytes: sizeBytes, guard: commitGuard, requester: call.requester,
                author: call.identity.asAuthor, isWanted: call.cancellation.isWanted
            ) { result in
                call.onLoop {
                    switch result {
                    case .success: call.respond(EmptyMessage())
                    case .failure(let status): call.finish(status)
                    }
                }
            }
        }
    }

    func batchGetDocuments(_ request: BatchGetDocumentsRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let database = try DatabaseName(parsing: request.database)
            let projection = try request.mask.map { mask throws(Status) in try mask.projection() }
            let consistency = try Self.consistency(
                transaction: request.transaction, newTransaction: request.newTransaction, readTime: request.readTime)
            var paths: [ResourcePath] = []
            var seen: Set<ResourcePath> = []
            for string in request.documents {
                let name = try ResourceName(document: string, in: database)
                if seen.insert(name.path).inserted { paths.append(name.path) }
            }
            let targets = paths.map { Database.ReadTarget.document($0) }
            guard
                let opened = try self.database(database, for: call, again: { self.batchGetDocuments(request, call) })
            else { return }
            let judge: ReadJudge = { [paths] reader throws(Status) in
                try self.access.get(paths, call.identity, database, reader)
            }
            if paths.count > Self.namesOnLoopMax {
                return try readOnWorker(call, opened, consistency, targets, judge: judge) { [paths] answer in
                    let source = BatchGetSource(
                        paths, nil, answer, of: opened, database: database, projection: projection, format: call.format)
                    MessageStream(source, to: call, pool: self.pool, reads: self.longReads).start()
                }
            }
            try read(call, opened, consistency, targets, judge: judge) {
                [paths] grant throws(Status) in
                let source = BatchGetSource(
                    paths, grant.view, ReadAnswer(grant), of: opened, database: database, projection: projection,
                    format: call.format)
                MessageStream(source, to: call, pool: self.pool, reads: self.longReads).start()
            }
        }
    }

    /// A worker judges, locks and reads the documents when there are more names than this.
    private static let namesOnLoopMax = 256
}

/// The response to BatchGetDocuments: the found documents in the order of the request, then the names of the missing
/// ones.
private final class BatchGetSource: MessageSource {
    private let paths: [ResourcePath]
    private let opened: Database
    private let readTime: Timestamp
    private var view: ReadView?
    private let database: DatabaseName
    private let projection: Projection?
    private let format: MessageFormat
    private var position = 0
    private var missing: [ResourcePath] = []
    private var missingPosition = 0
    private var transaction: [UInt8]
    let isLight: Bool

    /// - Parameter view: nil when workers read the documents.
    init(
        _ paths: [ResourcePath], _ view: ReadView?, _ answer: ReadAnswer, of opened: Database, database: DatabaseName,
        projection: Projection?, format: MessageFormat
    ) {
        self.opened = opened
        self.paths = paths
        self.view = view
        // In the past the changes since have to be walked over.
        isLight = view.map { !$0.isPast } ?? false
        readTime = answer.readTime
        self.database = database
        self.projection = projection
        self.format = format
        transaction = answer.newTransaction ?? []
    }

    var isPaused: Bool { false }
    var meter: WorkMeter? { nil }

    var isSuspended: Bool { view == nil }
    func hold(_ read: LongRead) { view?.hold(read) }
    func suspend() { view = nil }
    func resume(_ read: LongRead?) throws(Status) { view = try opened.pastView(at: readTime, under: read) }

    func next(onLoop: Bool, to messages: inout MessageBatch) throws(Status) -> Bool {
        while position < paths.count {
            let path = paths[position]
            position += 1
            if let document = try view?.document(path) {
                try append(document, path, to: &messages)
                return true
            }
            missing.append(path)
        }
        if missingPosition < missing.count {
            missingPosition += 1
            append(missing: name(missing[missingPosition - 1]), to: &messages)
            return true
        }
        if transaction.isEmpty { return false }
        // Nothing was requested: the transaction's id is sent alone.
        messages.append(
            BatchGetDocumentsResponse(transaction: transaction, readTime: TimestampMessage(readTime)), format)
        transaction = []
        return true
    }

    private func name(_ path: ResourcePath) -> String { ResourceName(database: database, path: path).string }

    private func append(
        _ document: StoredDocument, _ path: ResourcePath, to messages: inout MessageBatch
    ) throws(Status) {
        let encoded = try FirestoreService.encoded(document, name: name(path), projection)
        defer { transaction = [] }
        switch format {
        case .protobuf:
            var writer = ProtobufWriter(messages.begin())
            writer.batchGetDocumentsResponse(found: encoded, readTime: readTime, transaction: transaction)
            messages.end(&writer.bytes)
        case .json:
            var writer = JSONWriter()
            try writer.batchGetDocumentsResponse(found: encoded, readTime: readTime, transaction: transaction)
            messages.append(writer.bytes)
        }
    }

    private func append(missing name: String, to messages: inout MessageBatch) {
        defer { transaction = [] }
        switch format {
        case .protobuf:
            var writer = ProtobufWriter(messages.begin())
            writer.batchGetDocumentsResponse(missing: name, readTime: readTime, transaction: transaction)
            messages.end(&writer.bytes)
        case .json:
            var writer = JSONWriter()
            writer.batchGetDocumentsResponse(missing: name, readTime: readTime, transaction: transaction)
            messages.append(writer.bytes)
        }
    }
}
