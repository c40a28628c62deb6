import HearthModel
import HearthNetwork
import HearthStorage
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#endif

@testable import HearthServer

/// What one listener knows: made of nothing but what it is told, as it would go over the wire.
private final class Mirror: ListenReceiver, @unchecked Sendable {
    // Belongs to the loop.
    let target: RealtimeTarget
    private(set) var node = Node.empty
    private(set) var faults: [String] = []
    private(set) var pushCount = 0
    private(set) var isLoaded = false
    var handle: RealtimeListen! = nil

    init(_ target: RealtimeTarget) { self.target = target }

    func begin(_ hub: RealtimeHub, on loop: EventLoop) {
        handle = hub.listen(to: target, on: loop, self)
        load()
    }

    private func load() {
        let target = target
        handle.load { view throws(Status) in
            var text: [UInt8] = []
            if let query = target.query {
                TreeJSON.append(try HubWindow.result(query, target.path, view), to: &text, form: .export)
            } else {
                try view.appendJSON(at: target.path, to: &text, form: .export)
            }
            return text
        } _: { [self] result in
            do {
                node = try TreeJSON.node(try result.get())
                isLoaded = true
            } catch {
                faults.append("\(error)")
            }
        }
    }

    func listen(_ listen: RealtimeListen, changed push: RealtimePush) {
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
        let place = TreePath(try #require(try TreeJSON.value(message, in: member("p", body)).string))
        var changes: [TreeChange] = []
        if action == "m" {
            for (name, range) in try TreeJSON.members(message, in: member("d", body)) {
                changes.append(TreeChange(path: place + TreePath(name), node: try TreeJSON.node(message, in: range)))
            }
            if changes.isEmpty { faults.append("a merge of nothing") }
        } else {
            changes.append(TreeChange(path: place, node: try TreeJSON.node(message, in: try member("d", body))))
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
        guard target.path.contains(change.place) else {
            faults.append("\(change.path) is told to a listener at \(target.path)")
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

    func listenIsStale(_ listen: RealtimeListen) {
        listen.dropChanges()
        load()
    }

    func listen(_ listen: RealtimeListen, failed status: Status) { faults.append("\(status)") }
}

/// A database with a hub, loops and listeners.
private final class Bench {
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

    /// Waits for all that was begun on the loops, the writer's thread and the pool.
    func settle() {
        while true {
            for _ in 0..<3 {
                let latch = Latch(loops.count)
                database.perform { [loops] _ in
                    for loop in loops { loop.execute { latch.signal() } }
                }
                latch.wait()
            }
            let isQuiet = mirrors.allSatisfy { mirror, loop in
                on(loop) { mirror.handle.isLive || mirror.handle.isCancelled }
            }
            if isQuiet { return }
        }
    }

    func on<Value: Sendable>(_ loop: EventLoop, _ body: @escaping @Sendable () -> Value) -> Value {
        let latch = Latch(1)
        let result = Mutex<Value?>(nil)
        loop.execute {
            let value = body()
            result.withLock { $0 = value }
            latch.signal()
        }
        latch.wait()
        return result.withLock { $0! }
    }

    @discardableResult
    func write(_ changes: [TreeChange], base: TreePath? = nil) -> TreeOutcome {
        let latch = Latch(1)
        let outcome = Mutex<TreeOutcome?>(nil)
        database.submit(TreeWrite(changes: changes, nowMilliseconds: 5, base: base)) { result in
            outcome.withLock { $0 = result }
            latch.signal()
        }
        latch.wait()
        return outcome.withLock { $0! }
    }

    func close() {
        for (mirror, loop) in mirrors { _ = on(loop) { mirror.handle.cancel() } }
        settle()
        #expect(on(loops[0]) { true })
        for loop in loops { loop.stopAndJoin() }
        pool.stop()
        database.close()
    }
}

/// Counts down to 0.
private final class Latch: Sendable {
    private let count: Mutex<Int>
    init(_ count: Int) { self.count = Mutex(count) }
    func signal() { count.withLock { $0 -= 1 } }
    func wait() { while count.withLock({ $0 > 0 }) { sched_yield() } }
}

@Suite struct HubTests {
    private func json(_ node: Node) -> String {
        var text: [UInt8] = []
        TreeJSON.append(node, to: &text, form: .export)
        return String(decoding: text, as: UTF8.self)
    }

    private func agrees(_ node: Node, _ target: RealtimeTarget, _ model: Node, _ place: String) -> Bool {
        let wanted = expected(target, model)
        if node == wanted { return true }
        var query: [UInt8] = []
        if let wire = target.query?.wire { TreeJSON.append(wire, to: &query) }
        let asked = String(decoding: query, as: UTF8.self)
        Issue.record("\(place): at \(target.path) \(asked) \(json(node)) in place of \(json(wanted))")
        return false
    }

    private func expected(_ target: RealtimeTarget, _ model: Node) -> Node {
        let node = model.node(at: target.path)
        return target.query.map { $0.result(of: node) } ?? node
    }

    /// One write at random: at any depth, whole or several places at once.
    private func changes(_ random: inout Seeded) -> [TreeChange] {
        func change(_ random: inout Seeded) -> TreeChange {
            var path = random.path(upTo: 4)
            if random.next(10) == 0 {
                path = path.child(.priority)
                return TreeChange(path: path, node: random.priority().map { Node($0) } ?? .empty)
            }
            let node = random.next(4) == 0 ? Node.empty : random.node(depth: max(0, 4 - path.count))
            return TreeChange(path: path, node: node)
        }
        var changes: [TreeChange] = []
        for _ in 0..<(random.next(3) == 0 ? 2 + random.next(3) : 1) {
            let next = change(&random)
            let overlaps = changes.contains { $0.path.contains(next.path) || next.path.contains($0.path) }
            if !overlaps { changes.append(next) }
        }
        return changes
    }

    @Test(arguments: 1...24 as ClosedRange<UInt64>)
    func listenersAgreeWithTheTreeAfterEveryCommit(_ seed: UInt64) throws {
        var random = Seeded(seed)
        let bench = try Bench()
        defer { bench.close() }
        if seed % 2 == 0 {
            let done = Latch(1)
            bench.database.setIndexes(
                Seeded.keys.flatMap { key in
                    [[], ["$a"], ["$a", "$b"]].map {
                        TreeIndexDefinition(pattern: $0, index: .child(TreePath(keys: [key])))
                    }
                } + [TreeIndexDefinition(pattern: ["$a"], index: .value)]
            ) { _ in done.signal() }
            done.wait()
        }
        var model = Node.empty
        for step in 0..<120 {
            if step < 40 || random.next(8) == 0 {
                let query = random.next(3) > 0 ? random.query() : nil
                _ = bench.listen(to: random.path(upTo: 3), query, on: random.next(2))
                if random.next(2) == 0 { bench.settle() }
            }
            if random.next(12) == 0, let (mirror, loop) = bench.mirrors.randomElement(using: &random) {
                loop.execute { mirror.handle.cancel() }
            }
            let changes = changes(&random)
            let parents = changes.map { $0.path.parent ?? .root }
            let base = random.next(2) == 0 ? parents.min { $0.count < $1.count } : nil
            let isBase = base.map { base in changes.allSatisfy { base.contains($0.path) && base != $0.path } } ?? false
            guard case .committed = bench.write(changes, base: isBase ? base : nil) else {
                Issue.record("seed \(seed), step \(step): \(changes)")
                return
            }
            model = model.applying(changes)
            bench.settle()
            for (mirror, loop) in bench.mirrors {
                let (isCancelled, node, faults) = bench.on(loop) {
                    (mirror.handle.isCancelled, mirror.node, mirror.faults)
                }
                #expect(faults.isEmpty, "seed \(seed), step \(step), \(mirror.target)")
                if isCancelled { continue }
                guard
                    agrees(
                        node, mirror.target, model,
                        "seed \(seed), step \(step), \(changes.map { "\($0.path) = \(json($0.node))" })")
                else { return }
            }
        }
    }

    /// Nobody waits for anybody: in the end all agree.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func listenersThatComeWhileOthersWriteMissNothing(_ seed: UInt64) throws {
        var random = Seeded(seed)
        let bench = try Bench(loops: 3)
        defer { bench.close() }
        var model = Node.empty
        for _ in 0..<40 {
            for _ in 0..<8 {
                let changes = changes(&random)
                model = model.applying(changes)
                bench.database.submit(TreeWrite(changes: changes, nowMilliseconds: 5)) { _ in }
            }
            for index in 0..<3 {
                _ = bench.listen(to: random.path(upTo: 3), random.next(3) > 0 ? random.query() : nil, on: index)
            }
        }
        bench.settle()
        for (mirror, loop) in bench.mirrors {
            let (node, faults) = bench.on(loop) { (mirror.node, mirror.faults) }
            #expect(faults.isEmpty, "seed \(seed), \(mirror.target)")
            guard agrees(node, mirror.target, model, "seed \(seed)") else { return }
        }
    }

    /// What is committed while a window is being read holds nobody up, and is in the window in the end.
    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func commitsGoOnWhileWindowsAreRead(_ seed: UInt64) throws {
        var random = Seeded(seed)
        let bench = try Bench()
        defer { bench.close() }
        var model = Node.empty
        func commit(_ count: Int) {
            for _ in 0..<count {
                let changes = changes(&random)
                model = model.applying(changes)
                bench.write(changes)
            }
        }
        commit(10)
        for _ in 0..<6 {
            let gate = Latch(1)
            for _ in 0..<3 { bench.pool.run(.long, for: .server, refused: { _ in }) { gate.wait() } }
            for index in 0..<4 { _ = bench.listen(to: random.path(upTo: 2), random.query(), on: index) }
            commit(1 + random.next(6))
            gate.signal()
            commit(random.next(4))
            bench.settle()
            commit(3)
            bench.settle()
            for (mirror, loop) in bench.mirrors {
                let (node, faults) = bench.on(loop) { (mirror.node, mirror.faults) }
                #expect(faults.isEmpty, "seed \(seed), \(mirror.target)")
                guard agrees(node, mirror.target, model, "seed \(seed)") else { return }
            }
        }
    }

    @Test func onlyThoseWhomItConcernsAreTold() throws {
        let bench = try Bench()
        defer { bench.close() }
        let places: [TreePath] = ["", "a", "a/b", "a/b/c", "a/x", "d", "d/e"]
        let mirrors = places.map { bench.listen(to: $0, nil, on: 0) }
        bench.settle()
        bench.write([TreeChange(path: "a/b", node: 1)])
        bench.settle()
        let counts = mirrors.map { mirror in bench.on(bench.loops[0]) { mirror.pushCount } }
        // Those at and above. The one below has nothing still.
        #expect(counts == [1, 1, 1, 0, 0, 0, 0])
        bench.write([TreeChange(path: "a", node: inner(["b": inner(["c": 5]), "x": 6]))])
        bench.write([TreeChange(path: "a", node: inner(["b": inner(["c": 5]), "x": 7]))])
        bench.settle()
        let later = mirrors.map { mirror in bench.on(bench.loops[0]) { mirror.pushCount } }
        #expect(later == [3, 3, 2, 1, 2, 0, 0])
    }

    /// When the disk refuses a group, nobody hears of it, and windows go on from what was told.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func refusedGroupsAreNotTold(_ seed: UInt64) throws {
        var random = Seeded(seed)
        let store = FailingStore()
        let bench = try Bench(store: store)
        defer { bench.close() }
        for index in 0..<20 {
            _ = bench.listen(to: random.path(upTo: 2), random.next(4) > 0 ? random.query() : nil, on: index)
        }
        bench.settle()
        var model = Node.empty
        var refused = 0
        for step in 0..<150 {
            let changes = changes(&random)
            store.failsNext.store(random.next(4) == 0, ordering: .relaxed)
            switch bench.write(changes) {
            case .committed: model = model.applying(changes)
            case .failed: refused += 1
            case .stale: Issue.record()
            }
            bench.settle()
            for (mirror, loop) in bench.mirrors {
                let (node, faults) = bench.on(loop) { (mirror.node, mirror.faults) }
                #expect(faults.isEmpty, "seed \(seed), step \(step), \(mirror.target)")
                let place = "seed \(seed), step \(step), \(changes.map { "\($0.path) = \(json($0.node))" })"
                guard agrees(node, mirror.target, model, place) else { return }
            }
        }
        #expect(refused > 10)
    }
}

/// A store in memory that refuses to commit when it is told to.
private final class FailingStore: Store {
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
