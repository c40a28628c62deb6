import HearthModel
import HearthTree

@testable import HearthDatabase

/// An engine with its fake server, and the recorded events.
final class EngineFixture {
    let server: FakeTreeServer
    let connection: FakeTreeConnection
    let engine: DatabaseEngine
    let clock: EngineClock
    private(set) var lines: [String] = []

    init(_ json: String = "null", folder: String? = nil, cacheSizeBytesMax: Int64 = 10 << 20, connects: Bool = true)
        throws
    {
        server = FakeTreeServer()
        server.set(try treeNode(json), at: .root)
        connection = FakeTreeConnection(server)
        let clock = EngineClock()
        self.clock = clock
        engine = try DatabaseEngine(
            connection: connection, environment: clock.environment, folder: folder, cacheSizeBytesMax: cacheSizeBytesMax
        )
        connection.delegate = engine
        if connects { connection.connect() }
    }

    func run() { connection.run() }

    /// The events since the last call.
    func take() -> [String] {
        defer { lines = [] }
        return lines
    }

    func note(_ line: String) { lines.append(line) }

    @discardableResult
    func observe(
        _ path: TreePath, _ query: TreeQuery = TreeQuery(), _ kinds: EngineEventKinds = [.child, .value],
        name: String = "", isSingle: Bool = false
    ) -> ObserverID {
        engine.observe(
            query, at: path, kinds: kinds, isSingle: isSingle, onEvent: { self.note(name + eventLine($0)) },
            onCancel: { self.note("\(name)cancelled \($0.status)") })
    }

    func set(_ json: String, at path: TreePath) throws {
        engine.set(try treeNode(json), at: path) { self.note("set \($0?.status ?? "ok")") }
    }

    func update(_ json: String, at path: TreePath) throws {
        let update = try TreeJSON.merge(Array(json.utf8), at: path)
        engine.update(update.changes.map { ($0.path.relative(to: path), $0.node) }, at: path) {
            self.note("update \($0?.status ?? "ok")")
        }
    }

    /// Adds to the number at a location.
    func transact(_ path: TreePath, add: Int64 = 1, localEvents: Bool = true, name: String = "") {
        engine.runTransaction(at: path, localEvents: localEvents) { present in
            self.note("\(name)run \(treeString(present))")
            guard case .integer(let value)? = present.value ?? .integer(0) else { return nil }
            return Node(.integer(value + add))
        } completion: { outcome in
            switch outcome {
            case .committed(let node): self.note("\(name)committed \(treeString(node))")
            case .aborted(let node): self.note("\(name)aborted \(treeString(node))")
            case .failed(let failure): self.note("\(name)failed \(failure.status)")
            }
        }
    }
}

final class EngineClock {
    var now: Int64 = 5_000_000
    private var timers: [(id: Int, due: Int64, body: () -> Void)] = []
    private var lastID = 0
    private(set) var reports: [Status] = []

    var environment: DatabaseEngine.Environment {
        DatabaseEngine.Environment(
            now: { self.now },
            schedule: { milliseconds, body in
                self.lastID += 1
                let id = self.lastID
                self.timers.append((id, self.now + Int64(milliseconds), body))
                return { self.timers.removeAll { $0.id == id } }
            }, report: { self.reports.append($0) })
    }

    func advance(milliseconds: Int64) {
        now += milliseconds
        let due = timers.filter { $0.due <= now }
        timers.removeAll { $0.due <= now }
        for timer in due { timer.body() }
    }
}

func treeNode(_ json: String) throws -> Node { try TreeJSON.node(Array(json.utf8)) }

func treeString(_ node: Node) -> String {
    var string: [UInt8] = []
    TreeJSON.append(node, to: &string, form: .export)
    return String(decoding: string, as: UTF8.self)
}

func eventLine(_ event: EngineEvent) -> String {
    switch event.kind {
    case .value: "value \(treeString(event.node))"
    case .childRemoved: "- \(event.path.last?.string ?? "") \(treeString(event.node))"
    case .childAdded:
        "+ \(event.path.last?.string ?? "") \(treeString(event.node)) after \(event.previousKey?.string ?? "nothing")"
    case .childMoved: "~ \(event.path.last?.string ?? "") after \(event.previousKey?.string ?? "nothing")"
    case .childChanged: "! \(event.path.last?.string ?? "") \(treeString(event.node))"
    }
}

extension TreeQuery {
    static func ordered(by index: Index, first: Int? = nil, last: Int? = nil) -> TreeQuery {
        var query = TreeQuery()
        query.index = index
        query.limit = first ?? last
        query.isLimitedToLast = last != nil
        return query
    }

    static func keys(from start: TreeKey? = nil, to end: TreeKey? = nil) -> TreeQuery {
        var query = TreeQuery()
        query.index = .key
        query.start = start.map { Bound(value: .string($0.string), key: .key($0)) }
        query.end = end.map { Bound(value: .string($0.string), key: .key($0)) }
        return query
    }
}
