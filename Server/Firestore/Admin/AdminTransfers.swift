import HearthDocuments
import HearthExport
import HearthModel
import HearthWire

/// Exports and imports of whole databases or collection groups. Source: google/firestore/admin/v1/firestore_admin.proto,
/// and "Export and import data" in the documentation of Cloud Firestore.
extension AdminService {
    func exportDocuments(
        _ request: ExportDocumentsRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        let name = try DatabaseName(parsing: request.name)
        let root = try usableFolder()
        let ids = try Self.collectionIDs(request.collectionIds, request.namespaceIds)
        let time = try snapshotTime(request.snapshotTime)
        let database = try existing(name)
        if let time { try Self.check(time, database) }
        let path = try root.newFolder(request.outputUriPrefix, now: clock.now())
        let control = TransferControl()
        try transfers.enter(control)
        let (operations, start, uri) = (operations, operations.now, ExportRoot.uri(path))
        let metadata: @Sendable (OperationState?) -> ExportDocumentsMetadata = { ended in
            let progress = control.progress
            return ExportDocumentsMetadata(
                startTime: start, endTime: ended == nil ? nil : operations.now,
                operationState: ended ?? control.operationState, progressDocuments: progress.documents,
                progressBytes: progress.bytes, collectionIds: request.collectionIds, outputUriPrefix: uri,
                namespaceIds: request.namespaceIds,
                snapshotTime: request.snapshotTime ?? progress.readTime.map { TimestampMessage($0) })
        }
        var options = ExportJob.Options(
            path: path, name: Folders.name(path),
            collectionIDs: ids, time: time)
        options.makesParents = true
        let job = transfers.exportJob(database, options)
        run(
            database, control, metadata, { () throws(Status) in try job.run(control) },
            response: ExportDocumentsResponse(outputUriPrefix: uri), answer)
    }

    func importDocuments(
        _ request: ImportDocumentsRequest, _ answer: @escaping Answer<OperationMessage>
    ) throws(Status) {
        let name = try DatabaseName(parsing: request.name)
        let root = try usableFolder()
        var options = ImportJob.Options()
        options.collectionIDs = try Self.collectionIDs(request.collectionIds, request.namespaceIds)
        let database = try existing(name)
        let folder = try root.export(request.inputUriPrefix)
        let control = TransferControl()
        try transfers.enter(control)
        let (operations, start) = (operations, operations.now)
        let metadata: @Sendable (OperationState?) -> ImportDocumentsMetadata = { ended in
            let progress = control.progress
            return ImportDocumentsMetadata(
                startTime: start, endTime: ended == nil ? nil : operations.now,
                operationState: ended ?? control.operationState, progressDocuments: progress.documents,
                progressBytes: progress.bytes, collectionIds: request.collectionIds,
                inputUriPrefix: request.inputUriPrefix, namespaceIds: request.namespaceIds)
        }
        let job = ImportJob(folder, to: database, options)
        run(
            database, control, metadata, { () throws(Status) in try job.run(control) }, response: EmptyMessage(), answer
        )
    }

    /// Runs an export, import or deletion that was counted as an operation, which is answered when it has begun.
    /// - Parameter metadata: its metadata at the moment; the argument is how it ended, nil while it is under way.
    func run<Outcome>(
        _ database: Database, _ control: TransferControl,
        _ metadata: @escaping @Sendable (OperationState?) -> some WireMessage,
        _ job: @escaping @Sendable () throws(Status) -> Outcome, response: some WireMessage,
        _ answer: @escaping Answer<OperationMessage>
    ) {
        operations.begin(
            database, metadata: { AnyMessage(metadata(nil)) }, cancel: { control.cancel() }
        ) { [operations, transfers] begun in
            answer(begun)
            guard case .success(let operation) = begun else { return transfers.leave(control) }
            transfers.run(control, job) { result in
                operations.handle(operation).end(
                    metadata(Self.state(of: result.map { _ in })), result.map { _ in response })
            }
        }
    }

    private func usableFolder() throws(Status) -> ExportRoot {
        if let exportFolder { return exportFolder }
        throw .failedPrecondition(
            "This server has no folder for exports: start it with --export-folder FOLDER. hearth export and hearth import "
                + "work without one.")
    }

    /// - Parameter ignoresRepeats: whether an id may be there twice.
    /// - Returns: nil for all documents.
    static func collectionIDs(
        _ ids: [String], _ namespaceIDs: [String], ignoresRepeats: Bool = false
    ) throws(Status) -> [String]? {
        guard namespaceIDs.isEmpty || namespaceIDs == [""] else {
            throw .invalidArgument("A Firestore database has the default namespace only.")
        }
        if ids.count > Limits.collectionFiltersMax {
            throw .invalidArgument(
                "There are \(ids.count) collection ids; at most \(Limits.collectionFiltersMax) may be named.")
        }
        var seen: Set<[UInt8]> = []
        var distinct: [String] = []
        for id in ids {
            try ResourceName.validate(collectionID: id)
            if seen.insert(Array(id.utf8)).inserted {
                distinct.append(id)
            } else if !ignoresRepeats {
                throw .invalidArgument("The collection id \"\(id)\" is there twice.")
            }
        }
        return distinct.isEmpty ? nil : distinct
    }

    private func snapshotTime(_ message: TimestampMessage?) throws(Status) -> Timestamp? {
        guard let message else { return nil }
        guard message.nanos == 0, message.seconds % 60 == 0 else {
            throw .invalidArgument("The snapshotTime must be a whole minute.")
        }
        let time = Timestamp(microseconds: message.seconds.multipliedReportingOverflow(by: 1_000_000).partialValue)
        guard time.seconds == message.seconds, time <= clock.now() else {
            throw .invalidArgument("The snapshotTime must not be in the future.")
        }
        return time
    }

    private static func check(_ time: Timestamp, _ database: Database) throws(Status) {
        do throws(Status) {
            try database.check(readTime: time)
        } catch {
            if error.code != .failedPrecondition { throw error }
            let earliest = Timestamp(microseconds: try database.versionRetention().earliest)
            let time = RFC3339.format(seconds: earliest.seconds, nanoseconds: 0)
            throw .failedPrecondition("The snapshotTime is too old: this database has versions since \(time).")
        }
    }
}

extension TransferControl {
    /// As operations show it while they are under way.
    var operationState: OperationState {
        if isCancelled { return .cancelling }
        switch progress.phase {
        case .initializing: return .initializing
        case .processing: return .processing
        case .finalizing: return .finalizing
        }
    }
}

extension TransferControl.Progress {
    var documents: ProgressMessage {
        ProgressMessage(estimatedWork: Int64(estimatedDocumentCount), completedWork: Int64(documentCount))
    }

    var bytes: ProgressMessage {
        ProgressMessage(estimatedWork: Int64(estimatedSizeBytes), completedWork: Int64(sizeBytes))
    }
}
