@testable import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

import Glibc

@testable import HearthRealtimeServer

/// The data that one listener has: made only from its events, in the form of the wire.
final class Mirror: ListenReceiver, @unchecked Sendable {
    // Belongs to the loop.
    let target: RealtimeTarget
    private(set) var node = Node.empty
    private(set) var faults: [String] = []
    private(set) var pushCount = 0
    private(set) var isLoaded = false
    var handle: RealtimeSubscription! = nil

    init(_ target: RealtimeTarget) { self.target = target }

    func begin(_ hub: RealtimeHub, on loop: EventLoop) {
        handle = hub.listen(to: target, on: loop, self)
        load()
    }

    private func load() {
        let target = target
        handle.load { view throws(Status) in
            var string: [UInt8] = []
            if let query = target.query {
                TreeJSON.append(
                    try view.node(of: query, at: target.path, sizeBytesMax: .max) ?? .empty, to: &string, form: .export)
            } else {
                try view.appendJSON(at: target.path, to: &string, form: .export)
            }
            return string
        } _: { [self] result in
            do {
                node = try TreeJSON.node(try result.get())
                isLoaded = true
            } catch {
                faults.append("\(error)")
            }
        }
    }

    func listen(_ listen: RealtimeSubscription, changed push: RealtimePush) {
        pushCount += 1
        do {
            try apply(push.message)
        } catch {
            faults.append("\(error)")
        }
    }

    private func apply(_ message: [UInt8]) throws {
        let push = try TreeJSON.members(message, in: member("d", try TreeJSON.members(message)))
        let action = try TreeJSON.value(message, in: member("a", push)).string
        let body = try TreeJSON.members(message, in: member("b", push))
        let location = TreePath(try #require(try TreeJSON.value(message, in: member("p", body)).string))
        var changes: [TreeChange] = []
        if action == "m" {
            for (name, range) in try TreeJSON.members(message, in: member("d", body)) {
                changes.append(TreeChange(path: location + TreePath(name), node: try TreeJSON.node(message, in: range)))
            }
            if changes.isEmpty { faults.append("a merge of nothing") }
        } else {
            changes.append(TreeChange(path: location, node: try TreeJSON.node(message, in: try member("d", body))))
        }
        for change in changes { apply(change) }
        if let query = target.query {
            node = node.with(priority: nil)
            if let limit = query.limit, node.childCount > limit {
                faults.append("\(node.childCount) of \(limit) children")
            }
        }
    }

    private func apply(_ change: TreeChange) {
        guard target.path.contains(change.location) else {
            faults.append("\(change.path) was delivered to a listener at \(target.path)")
            return
        }
        let relative = TreeChange(path: change.path.relative(to: target.path), node: change.node)
        if target.query != nil, relative.path.count > 1, node.child(relative.path.keys[0]).isEmpty {
            faults.append("a change inside of \(change.path), which isn't in the window")
        }
        node = node.applying(relative)
    }

    private func member(_ name: String, _ members: [(name: String, value: Range<Int>)]) throws -> Range<Int> {
        try #require(members.first { $0.name == name }?.value)
    }

    func listenIsStale(_ listen: RealtimeSubscription) {
        listen.dropChanges()
        load()
    }

    func listen(_ listen: RealtimeSubscription, failed status: Status) { faults.append("\(status)") }
}

/// A database with a hub, loops and listeners.
final class Bench {
    let database: TreeDatabase
    let hub: RealtimeHub
    let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 3)
    let loops: [EventLoop]
    private(set) var mirrors: [(mirror: Mirror, loop: EventLoop)] = []

    init(store: any Store = MemoryStore(), loops count: Int = 2) throws {
        database = try TreeDatabase(name: "t", store: store, clock: SystemClock())
        hub = RealtimeHub(database, pool: pool)
        loops = try (0..<count).map { try EventLoop(index: $0) }
        for loop in loops { try loop.start() }
    }

    func listen(to path: TreePath, _ query: TreeQuery?, on index: Int) -> Mirror {
        let mirror = Mirror(RealtimeTarget(path: path, query: query))
        let loop = loops[index % loops.count]
        mirrors.append((mirror, loop))
        loop.execute { [hub] in mirror.begin(hub, on: loop) }
        return mirror
    }

    /// Waits for all work that was begun on the loops, the writer's thread and the pool.
    func settle() {
        while true {
            for _ in 0..<3 {
                let latch = Countdown(loops.count)
                database.perform { [hub, loops] _ in
                    for loop in loops { hub.execute(on: loop) { latch.signal() } }
                }
                latch.wait()
            }
            // A window that a failed group has lost is read while its listeners continue.
            if isReadingWindows { continue }
            let isQuiet = loops.allSatisfy { loop in
                let mine = mirrors.filter { $0.loop === loop }.map(\.mirror)
                return on(loop) { mine.allSatisfy { $0.handle.isLive || $0.handle.isCancelled } }
            }
            if isQuiet { return }
        }
    }

    private var isReadingWindows: Bool {
        let answer = Mutex<Bool?>(nil)
        database.perform { [hub] _ in
            let isReading = hub.isReadingWindows
            answer.withLock { $0 = isReading }
        }
        while true {
            if let isReading = answer.withLock({ $0 }) { return isReading }
            sched_yield()
        }
    }

    func on<Value: Sendable>(_ loop: EventLoop, _ body: @escaping @Sendable () -> Value) -> Value {
        let latch = Latch()
        let result = Mutex<Value?>(nil)
        loop.execute {
            let value = body()
            result.withLock { $0 = value }
            latch.open()
        }
        latch.wait()
        return result.withLock { $0! }
    }

    @discardableResult
    func write(_ changes: [TreeChange], base: TreePath? = nil) -> TreeOutcome {
        let latch = Latch()
        let outcome = Mutex<TreeOutcome?>(nil)
        database.submit(TreeWrite(changes: changes, nowMilliseconds: 5, base: base)) { result in
            outcome.withLock { $0 = result }
            latch.open()
        }
        latch.wait()
        return outcome.withLock { $0! }
    }

    func close() {
        for (mirror, loop) in mirrors { loop.execute { mirror.handle.cancel() } }
        settle()
        #expect(on(loops[0]) { true })
        for loop in loops { loop.stopAndJoin() }
        pool.stop()
        database.close()
    }
}

extension Bench {
    func json(_ node: Node) -> String {
        var string: [UInt8] = []
        TreeJSON.append(node, to: &string, form: .export)
        return String(decoding: string, as: UTF8.self)
    }

    func agrees(_ node: Node, _ target: RealtimeTarget, _ model: Node, _ note: String) -> Bool {
        let wanted = expected(target, model)
        if node == wanted { return true }
        var query: [UInt8] = []
        if let wire = target.query?.wire { TreeJSON.append(wire, to: &query) }
        let asked = String(decoding: query, as: UTF8.self)
        Issue.record("\(note): at \(target.path) \(asked) \(json(node)) instead of \(json(wanted))")
        return false
    }

    func expected(_ target: RealtimeTarget, _ model: Node) -> Node {
        let node = model.node(at: target.path)
        return target.query.map { $0.result(of: node) } ?? node
    }

    /// Whether every listener has the present data.
    func allAgree(with model: Node, _ note: @autoclosure () -> String) -> Bool {
        for loop in loops {
            let mine = mirrors.filter { $0.loop === loop }.map(\.mirror)
            let known = on(loop) { mine.map { ($0.handle.isCancelled, $0.node, $0.faults) } }
            for (mirror, (isCancelled, node, faults)) in zip(mine, known) {
                if !faults.isEmpty { Issue.record("\(note()), \(mirror.target): \(faults)") }
                if !isCancelled, !agrees(node, mirror.target, model, note()) { return false }
            }
        }
        return true
    }
}

/// A store in memory whose commits fail on request.
final class FailingStore: Store {
    private let inner = MemoryStore()
    let failsNext = Atomic<Bool>(false)

    func snapshot() throws(Status) -> any Snapshot { try inner.snapshot() }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        let fails = failsNext.exchange(false, ordering: .relaxed)
        return try inner.write { transaction throws(Status) in
            let result = try body(transaction)
            if fails { throw .unavailable("The disk is full.") }
            return result
        }
    }

    func maintain() { inner.maintain() }

    func close() { inner.close() }
}
