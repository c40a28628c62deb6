@testable import HearthRealtimeServer
@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

@testable import HearthServer

/// Listeners with queries at one location, compared with the result of a new read.
@Suite struct WindowListenTests {
    private let path: TreePath = "p/q"

    private func define(_ indexes: [TreeQuery.Index], _ bench: Bench) {
        let done = Latch()
        bench.database.setIndexes(indexes.map { TreeIndexDefinition(pattern: ["p", "q"], index: $0) }) { _ in
            done.open()
        }
        done.wait()
    }

    /// Indexes for odd seeds; large children for every third.
    private func bench(_ seed: UInt64, _ store: any Store = MemoryStore()) throws -> (Bench, WindowTrees) {
        let bench = try Bench(store: store)
        if seed % 2 == 1 { define([.value, .child("a"), .child("a/b"), .child("c")], bench) }
        return (bench, WindowTrees(seed, isLarge: seed % 3 == 0))
    }

    @Test(arguments: TestRun.numbers(9))
    func everyListenerHasTheDataOfANewReadAfterEveryWrite(_ seed: UInt64) throws {
        var (bench, trees) = try bench(seed)
        defer { bench.close() }
        var model = Node.empty
        func write(_ changes: [TreeChange]) {
            bench.write(changes)
            model = model.applying(changes)
        }
        write([TreeChange(path: path, node: trees.children(60))])
        for step in 0..<60 {
            if step < 15 || trees.random.below(10) == 0 {
                _ = bench.listen(to: path, trees.query(), on: trees.random.below(2))
                if trees.random.below(2) == 0 { bench.settle() }
            }
            if trees.random.below(15) == 0, let (mirror, loop) = bench.mirrors.randomElement(using: &trees.random) {
                loop.execute { mirror.handle.cancel() }
            }
            let changes = trees.changes(at: path)
            write(changes)
            bench.settle()
            let note =
                "seed \(seed), step \(step), \(changes.map { "\($0.path) = \(bench.json($0.node).prefix(80))" })"
            guard bench.allAgree(with: model, note) else { return }
        }
    }

    /// Commits overtake reads, and one another.
    @Test(arguments: TestRun.numbers(6))
    func everyListenerHasConcurrentWritesInTheEnd(_ seed: UInt64) throws {
        var (bench, trees) = try bench(seed)
        defer { bench.close() }
        var model = Node.empty
        for round in 0..<12 {
            for step in 0..<15 {
                let changes = trees.changes(at: path)
                model = model.applying(changes)
                bench.database.submit(TreeWrite(changes: changes, nowMilliseconds: 5)) { _ in }
                if step % 5 == 0 { _ = bench.listen(to: path, trees.query(), on: step) }
            }
            bench.settle()
            guard bench.allAgree(with: model, "seed \(seed), round \(round)") else { return }
        }
    }

    /// When a group fails on the disk, windows that were newer are found again.
    @Test(arguments: TestRun.numbers(6))
    func failedWritesLeaveNothingInWindows(_ seed: UInt64) throws {
        let store = FailingStore()
        var (bench, trees) = try bench(seed, store)
        defer { bench.close() }
        var model = Node.empty
        for _ in 0..<20 { _ = bench.listen(to: path, trees.query(), on: trees.random.below(2)) }
        bench.settle()
        for step in 0..<60 {
            let changes = trees.changes(at: path)
            store.failsNext.store(trees.random.below(4) == 0, ordering: .relaxed)
            if case .committed = bench.write(changes) { model = model.applying(changes) }
            bench.settle()
            guard bench.allAgree(with: model, "seed \(seed), step \(step)") else { return }
        }
    }

    // MARK: Work

    /// The windows that some writes visit beside n listeners that they don't affect, and one that they do.
    private func asked(_ count: Int, _ query: (Int) -> TreeQuery, _ writes: [[TreeChange]]) throws -> Int {
        let bench = try Bench()
        defer { bench.close() }
        define([.child("age")], bench)
        var model = Node.empty
        let people = Node(
            children: (0..<60).map { (TreeKey("p\($0)"), inner(["age": Node(.integer(Int64($0)))])) })
        let first = TreeChange(path: path, node: people)
        bench.write([first])
        model = model.applying([first])
        for index in 0..<count { _ = bench.listen(to: path, query(index), on: index) }
        bench.settle()
        let before = bench.hub.windowsVisited.load(ordering: .relaxed)
        for changes in writes {
            bench.write(changes)
            model = model.applying(changes)
        }
        bench.settle()
        #expect(bench.allAgree(with: model, "\(count) listeners"))
        return bench.hub.windowsVisited.load(ordering: .relaxed) - before
    }

    private func equal(_ index: TreeQuery.Index, _ value: Scalar) -> TreeQuery {
        var query = TreeQuery()
        query.index = index
        query.start = TreeQuery.Bound(value: value, key: .min)
        query.end = TreeQuery.Bound(value: value, key: .max)
        return query
    }

    private var agesOfOne: [[TreeChange]] {
        [("age", 17), ("age", 90), ("name", 1), ("age", 3)].map { name, value in
            [TreeChange(path: path + TreePath(keys: ["p1", name]), node: Node(.integer(value)))]
        } + [[TreeChange(path: path + "p1", node: .empty)]]
    }

    @Test(arguments: [100, 1000])
    func aWriteBesideManyValuesOfOneIndexVisitsTheirWindows(count: Int) throws {
        // From 1 to 17, to 90, inside of 90, to 3, and away.
        let asked = try asked(count, { equal(.child("age"), .integer(Int64($0))) }, agesOfOne)
        #expect(asked == 2 + 2 + 1 + 2 + 1)
    }

    @Test(arguments: [100, 1000])
    func aWriteBesideManyIndexesVisitsThoseOfItsChild(count: Int) throws {
        let query = { (index: Int) in
            equal(index == 0 ? .child("age") : .child(TreePath(keys: [TreeKey("f\(index)")])), .integer(90))
        }
        #expect(try asked(count, query, agesOfOne) == 3)
    }

    @Test(arguments: [100, 1000])
    func aWriteBehindTheLimitOfManyWindowsVisitsNone(count: Int) throws {
        let query = { (index: Int) in
            var query = TreeQuery()
            query.index = .child("age")
            // Queries of one window each, which all have the first children.
            query.start = TreeQuery.Bound(value: .double(-1 - Double(index)), key: .min)
            query.limit = 2
            return query
        }
        let writes = [59, 58, 57].map {
            [TreeChange(path: path + TreePath("p\($0)/age"), node: Node(.integer(100 + $0)))]
        }
        #expect(try asked(count, query, writes) == 0)
    }
}
