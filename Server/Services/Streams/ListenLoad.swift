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
    private let database: Database
    private let query: NormalizedQuery
    private let version: Int64
    private let meter: WorkMeter
    private var execution: QueryExecution?
    /// The last result that was given out, while the query runs.
    private var last: QueryResult?
    /// Where a suspended query goes on.
    private var lastPosition: [UInt8]?
    /// Of a query with a limit or an offset: the documents that were sent, with their update versions.
    private(set) var window: [[UInt8]: Int64] = [:]
    private(set) var count = 0

    init(
        _ live: LiveQuery, _ view: ReadView, of database: Database, _ id: Int32, _ projection: Projection?,
        requireIndexes: Bool, format: MessageFormat, cancellation: Cancellation
    ) throws(Status) {
        self.id = id
        self.projection = projection
        self.format = format
        isWindow = live.isWindow
        self.database = database
        query = live.query
        version = view.version
        names = DocumentNames(database.name)
        meter = WorkMeter { () throws(Status) in try cancellation.check() }
        let execution = try QueryExecution(live.query, view: view, meter: meter, requireIndexes: requireIndexes)
        isLight = execution.isLight
        self.execution = execution
    }

    let isLight: Bool

    func next() throws(Status) -> [UInt8]? {
        guard let result = try present().next() else { return nil }
        count += 1
        last = result
        if isWindow { window[result.key] = result.document.updateVersion }
        let encoded = try FirestoreService.encoded(result.document, name: try names.name(key: result.key), projection)
        return try Self.change(encoded, [id], removed: [], format)
    }

    /// The feed knows the state of the version at which the load began, and must end, as long as it reaches back to it.
    func suspend() {
        // Sorted results would have to be found again from the start.
        guard isLight, execution != nil else { return }
        do throws(Status) {
            if let last { lastPosition = try query.position(of: last) }
        } catch {
            // The document is damaged. The query keeps its snapshot and goes on from it.
            return
        }
        last = nil
        execution = nil
    }

    private func present() throws(Status) -> QueryExecution {
        if let execution { return execution }
        let remaining = query.query.limit.map { $0 - count }
        let rest = lastPosition.map { query.continued(after: $0, remaining: remaining, offset: 0) } ?? query
        let resumed = try QueryExecution(rest, view: try database.view(atVersion: version), meter: meter)
        execution = resumed
        return resumed
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
