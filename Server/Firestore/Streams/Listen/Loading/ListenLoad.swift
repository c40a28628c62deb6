import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// The documents of a query target, as messages of a Listen stream.
final class ListenLoad: MessageSource {
    private let id: Int32
    private let projection: Projection?
    private let format: MessageFormat
    private var names: DocumentNames
    private let results: SuspendableQuery
    /// The documents that were sent, for a query with a limit or an offset.
    let window: ListenWindow?
    private(set) var count = 0

    init(
        _ live: LiveQuery, _ view: ReadView, of database: Database, _ id: Int32, _ projection: Projection?,
        requireIndexes: Bool, format: MessageFormat, cancellation: Cancellation, memory: MemoryReservation,
        window: ListenWindow?
    ) throws(Status) {
        self.id = id
        self.projection = projection
        self.format = format
        self.window = window
        names = DocumentNames(database.name)
        let version = view.version
        let meter = WorkMeter(memory: memory) { () throws(Status) in try cancellation.check() }
        results = try SuspendableQuery(live.query, view, meter: meter, requireIndexes: requireIndexes) {
            read throws(Status) in try database.view(atVersion: version, under: read)
        }
    }

    var isLight: Bool { results.isLight }
    var isPaused: Bool { results.isPaused }
    var meter: WorkMeter? { results.meter }

    var isSuspended: Bool { results.isSuspended }
    func hold(_ read: LongRead) { results.hold(read) }
    /// The feed knows the state of the version at which the load began. The load must end when the feed no longer
    /// reaches back to it.
    func suspend() { results.suspend() }
    func resume(_ read: LongRead?) throws(Status) { try results.resume(read) }

    func next(onLoop: Bool, to messages: inout MessageBatch) throws(Status) -> Bool {
        guard let result = try results.next(onLoop: onLoop) else { return false }
        count += 1
        try window?.note(result.key, result.document.updateVersion)
        let encoded = try FirestoreService.encoded(result.document, name: try names.name(key: result.key), projection)
        messages.append(try Self.change(encoded, [id], removed: [], format))
        return true
    }

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
