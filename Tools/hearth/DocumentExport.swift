import HearthConcurrency
import HearthExport
import HearthModel
import HearthToolSupport
import HearthWire

/// Reads all documents of a database at one moment, in the order of their names, and writes them to an output. A lost
/// connection is opened again, and the reading goes on behind the last document.
///
/// `@unchecked Sendable`: belongs to the loop's thread while a call runs, otherwise to the thread that waits for it.
final class DocumentExport: @unchecked Sendable {
    private let connection: FirestoreConnection
    private let output: any DocumentOutput
    private let interruption: Interruption
    private let progress: DocumentProgress
    /// The moment; nil before the first answer.
    private var readTime: TimestampMessage?
    private var lastName = ""
    private(set) var documentCount = 0
    /// What failed on this side, as the server is not at fault.
    private var ownFailure: ToolFailure?
    private let root: String

    init(
        _ connection: FirestoreConnection, to output: any DocumentOutput, at readTime: TimestampMessage?,
        _ interruption: Interruption, _ progress: DocumentProgress
    ) {
        self.connection = connection
        self.output = output
        self.readTime = readTime
        self.interruption = interruption
        self.progress = progress
        root = connection.database.documentsRoot + "/"
    }

    /// - Parameter collectionIDs: the collection groups; nil for all documents.
    func run(collectionIDs: [String]?) throws(ToolFailure) {
        try findReadTime()
        for id in collectionIDs.map({ $0.map { Optional($0) } }) ?? [nil] {
            count(id)
            try scan(id)
            if let id { try FileErrors.of { () throws(Status) in try output.end(collectionID: id) } }
        }
    }

    // MARK: Reading

    private func query(_ collectionID: String?, after name: String = "", limit: Int32? = nil) -> [UInt8] {
        let byName = StructuredQueryMessage.Order(
            field: StructuredQueryMessage.FieldReference(fieldPath: "__name__"), direction: .ascending)
        let query = StructuredQueryMessage(
            from: [StructuredQueryMessage.CollectionSelector(collectionId: collectionID ?? "", allDescendants: true)],
            orderBy: [byName], startAt: name.isEmpty ? nil : CursorMessage(values: [.reference(name)], before: false),
            limit: limit)
        return RunQueryRequest(
            parent: connection.database.documentsRoot, structuredQuery: query, readTime: readTime
        ).protobuf()
    }

    /// A first answer names the moment for all that follows.
    private func findReadTime() throws(ToolFailure) {
        var faults = FirestoreConnection.Faults()
        while readTime == nil {
            do throws(Status) {
                try connection.stream("RunQuery", query(nil, limit: 1)) { [self] bytes throws(Status) in
                    readTime = try RunQueryResponse(protobuf: bytes).readTime ?? readTime
                }
                if readTime == nil { throw .internalError("the server's answer has no read time") }
            } catch {
                try connection.recover(from: error, &faults)
            }
        }
    }

    private func scan(_ collectionID: String?) throws(ToolFailure) {
        var faults = FirestoreConnection.Faults()
        lastName = ""
        while true {
            let countBefore = documentCount
            do throws(Status) {
                try connection.stream("RunQuery", query(collectionID, after: lastName)) { [self] bytes throws(Status) in
                    try take(bytes)
                }
                return
            } catch {
                if let ownFailure { throw ownFailure }
                if documentCount > countBefore { faults.clear() }
                try connection.recover(from: error, &faults)
            }
        }
    }

    private func take(_ bytes: [UInt8]) throws(Status) {
        guard let document = try RunQueryResponse(protobuf: bytes).document else { return }
        guard document.name.utf8.starts(with: root.utf8) else {
            throw .internalError("the server's answer has a document of another database: \(document.name)")
        }
        let path = String(Substring(document.name.utf8.dropFirst(root.utf8.count)))
        let fields = FieldsCodec.encode(document.fields)
        try interruption.whole(unless: output.isStream) { () throws(Status) in
            do throws(Status) {
                try output.write(path: path, fields: fields)
            } catch {
                let code: ToolFailure.Code = error.code == .invalidArgument ? .failed : .data
                ownFailure = ToolFailure(code, error.message)
                throw error
            }
        }
        lastName = document.name
        documentCount += 1
        if documentCount & 255 == 0 { progress.update(documents: documentCount, bytes: output.sizeBytes) }
    }

    // MARK: Progress

    /// Asks how many documents there are, when that is shown. Without an answer it is not.
    private func count(_ collectionID: String?) {
        guard progress.isShown else { return }
        let query = StructuredQueryMessage(
            from: [StructuredQueryMessage.CollectionSelector(collectionId: collectionID ?? "", allDescendants: true)])
        let count = StructuredAggregationQueryMessage.Aggregation(
            count: StructuredAggregationQueryMessage.Aggregation.Count(), alias: "n")
        let request = RunAggregationQueryRequest(
            parent: connection.database.documentsRoot,
            structuredAggregationQuery: StructuredAggregationQueryMessage(
                structuredQuery: query, aggregations: [count]),
            readTime: readTime)
        let before = documentCount
        connection.begin("RunAggregationQuery", request.protobuf()) { [progress] bytes throws(Status) in
            let fields = try RunAggregationQueryResponse(protobuf: bytes).result?.aggregateFields
            // The server may say anything.
            if case .integer(let number)? = fields?["n"], 0...1 << 53 ~= number {
                progress.setTotal(before + Int(number))
            }
        } _: { _ in
        }
    }
}
