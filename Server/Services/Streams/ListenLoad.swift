import HearthModel
import HearthStorage
import HearthWire

/// The documents of a query target, as messages of a Listen stream.
final class ListenLoad: MessageSource {
    private let id: Int32
    private let projection: Projection?
    private let format: MessageFormat
    private let isWindow: Bool
    private var names: DocumentNames
    private let execution: QueryExecution
    /// Of a query with a limit or an offset: the documents that were sent, with their update versions.
    private(set) var window: [[UInt8]: Int64] = [:]
    private(set) var count = 0

    init(
        _ live: LiveQuery, _ view: ReadView, _ id: Int32, _ projection: Projection?, requireIndexes: Bool,
        format: MessageFormat, cancellation: Cancellation
    ) throws(Status) {
        self.id = id
        self.projection = projection
        self.format = format
        isWindow = live.isWindow
        names = DocumentNames(live.query.query.parent.database)
        execution = try QueryExecution(
            live.query, view: view, meter: WorkMeter { () throws(Status) in try cancellation.check() },
            requireIndexes: requireIndexes)
        isLight = execution.isLight
    }

    let isLight: Bool

    func next() throws(Status) -> [UInt8]? {
        guard let result = try execution.next() else { return nil }
        count += 1
        if isWindow { window[result.key] = result.document.updateVersion }
        let encoded = try FirestoreService.encoded(result.document, name: try names.name(key: result.key), projection)
        return try Self.change(encoded, [id], removed: [], format)
    }

    /// The snapshot is kept: a load has to end at the version at which it began.
    func suspend() {}

    static func change(
        _ document: EncodedDocument, _ ids: [Int32], removed: [Int32], _ format: MessageFormat
    ) throws(Status) -> [UInt8] {
        switch format {
        case .protobuf:
            var writer = ProtobufWriter()
            writer.documentChangeResponse(document, targetIDs: ids, removedTargetIDs: removed)
            return writer.bytes
        case .json:
            var writer = JSONWriter()
            try writer.documentChangeResponse(document, targetIDs: ids, removedTargetIDs: removed)
            return writer.bytes
        }
    }
}
