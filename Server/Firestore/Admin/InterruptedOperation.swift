import HearthDocuments
import HearthModel
import HearthWire

/// An operation that was under way when an earlier process ended.
///
/// Builds of indexes and policies are resumed when their database is opened (`Database.resumeIndexes`): their operations
/// end as the catalog says. All others have failed.
struct InterruptedOperation {
    private let operation: OperationMessage
    private let database: Database
    private let endTime: TimestampMessage

    /// - Parameter endTime: at which the process began that does not know the operation.
    init(_ operation: OperationMessage, _ database: Database, endTime: Timestamp) {
        self.operation = operation
        self.database = database
        self.endTime = TimestampMessage(endTime)
    }

    private static let restarted = Status.aborted("The server was restarted while the operation was under way.")

    /// The operation with its end; nil when it is still under way.
    func ended() throws(Status) -> OperationMessage? {
        guard let any = operation.metadata else { return failed(nil as EmptyMessage?, Self.restarted) }
        if let metadata = try any.unpacked(IndexOperationMetadata.self) { return try ended(metadata) }
        if let metadata = try any.unpacked(FieldOperationMetadata.self) { return try ended(metadata) }
        if var metadata = try any.unpacked(ExportDocumentsMetadata.self) {
            (metadata.endTime, metadata.operationState) = (endTime, .failed)
            return failed(metadata, Self.restarted)
        }
        if var metadata = try any.unpacked(ImportDocumentsMetadata.self) {
            (metadata.endTime, metadata.operationState) = (endTime, .failed)
            return failed(metadata, Self.restarted)
        }
        if var metadata = try any.unpacked(BulkDeleteDocumentsMetadata.self) {
            (metadata.endTime, metadata.operationState) = (endTime, .failed)
            return failed(metadata, Self.restarted)
        }
        return failed(nil as EmptyMessage?, Self.restarted)
    }

    private func ended(_ metadata: IndexOperationMetadata) throws(Status) -> OperationMessage? {
        var metadata = metadata
        metadata.endTime = endTime
        guard let definition = try definition(metadata) else {
            metadata.state = .failed
            return failed(metadata, .aborted("The index was deleted before it was ready."))
        }
        if definition.state == .creating { return nil }
        metadata.state = .successful
        return succeeded(metadata, definition.message(in: database.name))
    }

    private func definition(_ metadata: IndexOperationMetadata) throws(Status) -> IndexDefinition? {
        let name = try IndexName(parsing: metadata.index)
        return database.catalog.ownDefinitions.first {
            $0.id == name.id && UTF8Order.equal($0.collectionID, name.group.collectionID)
        }
    }

    private func ended(_ metadata: FieldOperationMetadata) throws(Status) -> OperationMessage? {
        let catalog = database.catalog
        let field = FieldView(catalog: catalog, database: database.name).message(try FieldName(parsing: metadata.field))
        let isCreating =
            field.ttlConfig?.state == .creating
            || field.indexConfig?.indexes.contains { $0.state == .creating } ?? false
        if isCreating || catalog.isChanging { return nil }
        var metadata = metadata
        metadata.endTime = endTime
        metadata.state = .successful
        return succeeded(metadata, field)
    }

    private func succeeded(_ metadata: some WireMessage, _ response: some WireMessage) -> OperationMessage {
        var ended = operation
        ended.metadata = AnyMessage(metadata)
        ended.done = true
        ended.response = AnyMessage(response)
        return ended
    }

    /// - Parameter metadata: nil leaves it as it is.
    private func failed(_ metadata: (some WireMessage)?, _ reason: Status) -> OperationMessage {
        var ended = operation
        if let metadata { ended.metadata = AnyMessage(metadata) }
        ended.end(Result<EmptyMessage, Status>.failure(reason))
        return ended
    }

    /// Ends the build of an index that was resumed.
    /// - Returns: false for others, which go on.
    func cancel() throws(Status) -> Bool {
        guard let metadata = try operation.metadata?.unpacked(IndexOperationMetadata.self),
            let definition = try definition(metadata)
        else { return false }
        AdminService.remove(definition, from: database) { _ in }
        return true
    }
}
