import HearthHost
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// The documents that a target names, as messages of a Listen stream, sent at the client's speed.
final class DocumentsLoad: MessageSource {
    private let target: Int32
    private let keys: [[UInt8]]
    private let database: Database
    private let version: Int64
    private let readTime: Timestamp
    private let format: MessageFormat
    private var names: DocumentNames
    private var view: ReadView?
    private var position = 0

    init(
        _ keys: [[UInt8]], _ view: ReadView, of database: Database, _ target: Int32, format: MessageFormat
    ) {
        self.keys = keys
        self.view = view
        self.database = database
        self.target = target
        self.format = format
        version = view.version
        readTime = view.readTime
        names = DocumentNames(database.name)
    }

    var isLight: Bool { true }
    var isPaused: Bool { false }
    var meter: WorkMeter? { nil }

    var isSuspended: Bool { view == nil }
    func hold(_ read: LongRead) { view?.hold(read) }
    func suspend() { view = nil }
    func resume(_ read: LongRead?) throws(Status) { view = try database.view(atVersion: version, under: read) }

    func next(onLoop: Bool, to messages: inout MessageBatch) throws(Status) -> Bool {
        guard position < keys.count else { return false }
        guard let view else { throw .internalError("A suspended target was asked for a document.") }
        let key = keys[position]
        position += 1
        let name = try names.name(key: key)
        if let document = try view.document(key: key) {
            messages.append(try ListenLoad.change(document.encoded(name: name), [target], removed: [], format))
        } else {
            let change = DocumentDeleteMessage(
                document: name, removedTargetIds: [target], readTime: TimestampMessage(readTime))
            messages.append(ListenResponse(documentDelete: change), format)
        }
        return true
    }
}
