import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthTestSupport
import HearthTree
import Synchronization

@testable import HearthTreeStorage
@testable import HearthTriggers

func tree(_ json: String) -> Node {
    do throws(TreeDataError) { return try TreeJSON.node(Array(json.utf8)) } catch { fatalError("\(error)") }
}

func treeDefinition(
    _ name: String, _ ref: String, _ type: String = "google.firebase.database.ref.v1.written",
    url: String = "http://127.0.0.1:9/", retry: String = "{\"minBackoff\":\"1ms\",\"maxBackoff\":\"5ms\"}",
    more: String = ""
) throws -> TriggerDefinition {
    var json: [UInt8] = Array("{\"event\":\"\(type)\",\"ref\":".utf8)
    TreeJSON.appendString(ref, to: &json)
    json += Array(",\"url\":\"\(url)\",\"retry\":\(retry)\(more)}".utf8)
    return try TriggerDefinition(
        name: name, try ConfigurationValue(parsing: json, file: "f"), source: .file, defaultProject: "p"
    ) { (_) throws(Status) in [] }
}

/// A trigger that the process began with.
extension TriggerID: ExpressibleByStringLiteral {
    public init(stringLiteral name: String) { self.init(name: name) }
}

/// Keeps a tree open, as a namespace does.
final class Owner: Sendable {}

/// A namespace with the recorder of its events.
struct EventTree {
    let database: TreeDatabase
    let events: TreeEvents
    let owner = Owner()

    init(
        _ definitions: [TriggerDefinition], store: any Store = MemoryStore(), bounds: TreeEvents.Bounds = .init(),
        options: TreeWriterOptions = TreeWriterOptions(), clock: any Clock = SystemClock()
    ) throws {
        database = try TreeDatabase(name: "ns", store: store, clock: clock, options: options)
        let view = try database.view()
        defer { view.close() }
        events = try TreeEvents(
            TreeEvents.Triggers(definitions), namespace: "ns", before: view, bounds: bounds, clock: clock
        ) { _ in }
        database.setRecorder(events)
    }

    @discardableResult
    func write(_ changes: [TreeChange], by author: EventAuthor = .system, now: Int64 = 0) throws -> TreeCommit {
        let outcome = Promise<TreeOutcome>()
        database.submit(TreeWrite(changes: changes, nowMilliseconds: now, author: { author.stored })) {
            outcome.give($0)
        }
        switch outcome.wait() {
        case .committed(let commit): return commit
        case .stale: throw Status.aborted("stale")
        case .failed(let status): throw status
        }
    }

    @discardableResult
    func put(_ path: TreePath, _ json: String, by author: EventAuthor = .system) throws -> TreeCommit {
        try write([TreeChange(path: path, node: tree(json))], by: author)
    }

    func read<Value>(_ body: (TreeView) throws -> Value) throws -> Value {
        let view = try database.view()
        defer { view.close() }
        return try body(view)
    }

    func source(_ definition: TriggerDefinition, clock: any Clock = SystemClock()) -> TreeEventSource {
        let open = TreeEventSource.Open(tree: database, owner: owner, events: events)
        let source = TreeEventSource(
            definition, namespace: "ns", location: "us-central1", clock: clock, open: { .open(open) })
        _ = source.access()
        return source
    }

    func settle(_ source: TreeEventSource, _ settled: [Delivery.Event]) throws {
        let done = Promise<Result<Void, Status>>()
        _ = source.settle(settled.map { Delivery.Settled(event: $0, result: .delivered) }) { done.give($0) }
        try done.wait().get()
    }

    /// All records of the recorder but the numbers of triggers.
    func recordCount() throws -> Int {
        try read { view in
            var count = 0
            for mark in ["q", "r", "s", "a"] {
                count += try view.records.count(.meta, KeyRange(prefix: Array(mark.utf8)), limit: .max)
            }
            return count
        }
    }
}
