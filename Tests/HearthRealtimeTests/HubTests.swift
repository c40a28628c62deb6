@testable import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

@testable import HearthRealtimeServer

@Suite struct HubTests {
    /// One random write: at any depth, a whole value or several locations at once.
    private func changes(_ random: inout SeededGenerator) -> [TreeChange] {
        func change(_ random: inout SeededGenerator) -> TreeChange {
            var path = random.path(upTo: 4)
            if random.below(10) == 0 {
                path = path.child(.priority)
                return TreeChange(path: path, node: random.priority().map { Node($0) } ?? .empty)
            }
            let node = random.below(4) == 0 ? Node.empty : random.node(depth: max(0, 4 - path.count))
            return TreeChange(path: path, node: node)
        }
        var changes: [TreeChange] = []
        for _ in 0..<(random.below(3) == 0 ? 2 + random.below(3) : 1) {
            let next = change(&random)
            let overlaps = changes.contains { $0.path.contains(next.path) || next.path.contains($0.path) }
            if !overlaps { changes.append(next) }
        }
        return changes
    }

    @Test(arguments: TestRun.numbers(8))
    func listenersAgreeWithTheTreeAfterEveryCommit(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bench = try Bench()
        defer { bench.close() }
        if seed % 2 == 0 {
            let done = Latch()
            bench.database.setIndexes(
                SeededGenerator.keys.flatMap { key in
                    [[], ["$a"], ["$a", "$b"]].map {
                        TreeIndexDefinition(pattern: $0, index: .child(TreePath(keys: [key])))
                    }
                } + [TreeIndexDefinition(pattern: ["$a"], index: .value)]
            ) { _ in done.open() }
            done.wait()
        }
        var model = Node.empty
        for step in 0..<120 {
            if step < 40 || random.below(8) == 0 {
                let query = random.below(3) > 0 ? random.query() : nil
                _ = bench.listen(to: random.path(upTo: 3), query, on: random.below(2))
                if random.below(2) == 0 { bench.settle() }
            }
            if random.below(12) == 0, let (mirror, loop) = bench.mirrors.randomElement(using: &random) {
                loop.execute { mirror.handle.cancel() }
            }
            let changes = changes(&random)
            let parents = changes.map { $0.path.parent ?? .root }
            let base = random.below(2) == 0 ? parents.min { $0.count < $1.count } : nil
            let isBase = base.map { base in changes.allSatisfy { base.contains($0.path) && base != $0.path } } ?? false
            guard case .committed = bench.write(changes, base: isBase ? base : nil) else {
                Issue.record("seed \(seed), step \(step): \(changes)")
                return
            }
            model = model.applying(changes)
            bench.settle()
            let note = "seed \(seed), step \(step), \(changes.map { "\($0.path) = \(bench.json($0.node))" })"
            guard bench.allAgree(with: model, note) else { return }
        }
    }

    /// No listener or writer waits for another: in the end all agree.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func newListenersMissNoConcurrentWrite(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
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
                _ = bench.listen(to: random.path(upTo: 3), random.below(3) > 0 ? random.query() : nil, on: index)
            }
        }
        bench.settle()
        #expect(bench.allAgree(with: model, "seed \(seed)"))
    }

    /// Commits during the read of a window continue, and are in the window in the end.
    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func commitsContinueWhileWindowsAreRead(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
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
            let gate = Latch()
            bench.pool.run(.brief, for: .server, refused: { _ in }) { gate.wait() }
            for index in 0..<4 { _ = bench.listen(to: random.path(upTo: 2), random.query(), on: index) }
            commit(1 + random.below(6))
            gate.open()
            commit(random.below(4))
            bench.settle()
            commit(3)
            bench.settle()
            guard bench.allAgree(with: model, "seed \(seed)") else { return }
        }
    }

    /// An update of so many locations that the writer neither reads each of them for windows nor compares them with
    /// each other.
    @Test(arguments: [RealtimeHub.touchedMax + 100, 2_500]) func listenersAgreeAfterAWideUpdate(count: Int) throws {
        var random = SeededGenerator(seed: UInt64(count))
        let bench = try Bench()
        defer { bench.close() }
        var model = Node.empty
        func write(_ changes: [TreeChange]) {
            guard case .committed = bench.write(changes, base: "wide") else {
                Issue.record("the update was not made")
                return
            }
            model = model.applying(changes)
            bench.settle()
            _ = bench.allAgree(with: model, "after an update of \(changes.count)")
        }
        func update(_ value: (Int) -> Node) -> [TreeChange] {
            (0..<count).map { TreeChange(path: TreePath("wide/k\($0)"), node: value($0)) }
        }
        write(update { Node(.integer(Int64($0 % 50))) })
        for path in ["wide", "", "wide/k7", "wide/k8/x", "wide/none"] as [TreePath] {
            _ = bench.listen(to: path, nil, on: 0)
            _ = bench.listen(to: path, random.query(), on: 1)
            _ = bench.listen(to: path, random.query(), on: 0)
        }
        bench.settle()
        write(update { $0 % 3 == 0 ? .empty : inner(["x": Node(.integer(Int64($0)))]) })
        write([TreeChange(path: "wide/k8/x", node: 1)])
        write(update { $0 % 2 == 0 ? 5 : .empty })
        write(update { _ in .empty })
        write([TreeChange(path: "wide/k1", node: 1)])
    }

    @Test func onlyAffectedListenersAreNotified() throws {
        let bench = try Bench()
        defer { bench.close() }
        let locations: [TreePath] = ["", "a", "a/b", "a/b/c", "a/x", "d", "d/e"]
        let mirrors = locations.map { bench.listen(to: $0, nil, on: 0) }
        bench.settle()
        bench.write([TreeChange(path: "a/b", node: 1)])
        bench.settle()
        let counts = mirrors.map { mirror in bench.on(bench.loops[0]) { mirror.pushCount } }
        // The listeners at and above. The one below still has nothing.
        #expect(counts == [1, 1, 1, 0, 0, 0, 0])
        bench.write([TreeChange(path: "a", node: inner(["b": inner(["c": 5]), "x": 6]))])
        bench.write([TreeChange(path: "a", node: inner(["b": inner(["c": 5]), "x": 7]))])
        bench.settle()
        let later = mirrors.map { mirror in bench.on(bench.loops[0]) { mirror.pushCount } }
        #expect(later == [3, 3, 2, 1, 2, 0, 0])
    }

    /// Listens to empty locations add no cost to a write above them: the cost depends on the data.
    @Test(arguments: [false, true])
    func listensToNothingBelowAWriteAreNotVisited(isLarge: Bool) throws {
        var visits: [Int] = []
        for count in [100, 1000, 10_000] {
            let bench = try Bench()
            defer { bench.close() }
            let string = Node(.string(String(repeating: "x", count: isLarge ? 200_000 : 10)))
            bench.write([TreeChange(path: "open/x", node: inner(["string": string, "k1": 1]))])
            let mirrors = (0..<count).map { bench.listen(to: TreePath("open/x/k\($0)/y"), nil, on: $0 % 2) }
            bench.settle()
            let before = bench.hub.reads.visits
            for number in 0..<5 {
                bench.write([
                    TreeChange(path: "open/x", node: inner(["string": string, "k1": Node(.integer(Int64(number)))]))
                ])
            }
            bench.settle()
            visits.append(bench.hub.reads.visits - before)
            let delivered = mirrors.enumerated().map { number, mirror in
                bench.on(bench.loops[number % 2]) { mirror.pushCount }
            }
            #expect(delivered.reduce(0, +) == 0)
        }
        #expect(visits[2] < 50, "\(visits)")
    }

    /// Listeners are notified when their data has changed, and the others aren't.
    @Test(arguments: [10, 3000])
    func aWriteAboveManyNotifiesThoseWhoseDataChanged(stringBytes: Int) throws {
        let bench = try Bench()
        defer { bench.close() }
        func content(_ changed: Range<Int>, _ value: Int64) -> Node {
            Node(
                children: (0..<300).map { number in
                    let string = Node(.string(String(repeating: "x", count: stringBytes)))
                    let known: Int64 = changed.contains(number) ? value : 0
                    return (TreeKey("k\(number)"), inner(["n": Node(.integer(known)), "string": string]))
                })
        }
        bench.write([TreeChange(path: "a", node: content(0..<0, 0))])
        let mirrors = (0..<300).map { bench.listen(to: TreePath("a/k\($0)/n"), nil, on: 0) }
        bench.settle()
        let changed = content(10..<20, 5)
        bench.write([TreeChange(path: "a", node: changed)])
        bench.settle()
        #expect(bench.allAgree(with: inner(["a": changed]), "after"))
        let counts = mirrors.map { mirror in bench.on(bench.loops[0]) { mirror.pushCount } }
        #expect(counts[10..<20].allSatisfy { $0 == 1 })
        if stringBytes < 100 { #expect(counts.reduce(0, +) == 10) }
    }

    /// When a group fails on the disk, no listener is notified, and windows continue from their last events.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func failedGroupsAreNotDelivered(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let store = FailingStore()
        let bench = try Bench(store: store)
        defer { bench.close() }
        for index in 0..<20 {
            _ = bench.listen(to: random.path(upTo: 2), random.below(4) > 0 ? random.query() : nil, on: index)
        }
        bench.settle()
        var model = Node.empty
        var refused = 0
        for step in 0..<150 {
            let changes = changes(&random)
            store.failsNext.store(random.below(4) == 0, ordering: .relaxed)
            switch bench.write(changes) {
            case .committed: model = model.applying(changes)
            case .failed: refused += 1
            case .stale: Issue.record()
            }
            bench.settle()
            let note = "seed \(seed), step \(step), \(changes.map { "\($0.path) = \(bench.json($0.node))" })"
            guard bench.allAgree(with: model, note) else { return }
        }
        #expect(refused > 10)
    }
}
