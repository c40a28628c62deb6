import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

import Glibc

@testable import HearthTreeStorage

/// Writes of very many locations, which are made on a shadow of the tree.
@Suite struct WideUpdateTests {
    private static let definitions = [
        TreeIndexDefinition(pattern: [], index: .child("a")), TreeIndexDefinition(pattern: ["$x"], index: .value),
        TreeIndexDefinition(pattern: ["a"], index: .child("a/b")),
        TreeIndexDefinition(pattern: ["$x", "$y"], index: .child("b")),
    ]

    private final class Commits: TreeObserver {
        let all = Mutex<[TreeCommit]>([])
        private let prepared = Mutex<[TreeCommit]>([])
        func prepare(_ commit: TreeCommit, after: TreeView) { prepared.withLock { $0.append(commit) } }
        func publish() {
            let new = prepared.withLock { prepared in
                defer { prepared = [] }
                return prepared
            }
            all.withLock { $0 += new }
        }
        func discard() { prepared.withLock { $0 = [] } }
    }

    private func open(_ store: any Store, _ options: TreeWriterOptions) throws -> TreeDatabase {
        try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
    }

    private func canonical(_ model: Node) throws -> [[UInt8]: [UInt8]] {
        let store = MemoryStore()
        let database = try open(store, TreeWriterOptions())
        defer { database.close() }
        try database.define(Self.definitions)
        try database.write(TreeWrite((.root, model)))
        return try contents(store)
    }

    /// Small and wide writes of several connections at once, above, below and beside each other, on every engine: the
    /// tree is the result of the commits in their order, and nothing else is stored.
    @Test(arguments: Engine.allCases) func writesBesideAWideOneAreOnBothTrees(engine: Engine) throws {
        let seed = TestRun.seed()
        var trees = RandomTrees(seed)
        var wide = 0
        for round in 0..<25 * TestRun.effort {
            let note: Comment = "seed \(seed), round \(round)"
            let store = try LastingStore(engine)
            var options = TreeWriterOptions.sliced(nodes: 12, records: 1 + trees.random.below(4))
            options.replacementLocationsMax = trees.random.chance(70) ? 0 : 2
            let database = try open(store, options)
            let commits = Commits()
            try database.define(Self.definitions)
            database.finishBuilding()
            var model = Node.empty
            for _ in 0..<8 {
                let changes = trees.changes().filter { !$0.node.dependsOnPresent }
                let resolved = try changes.map { try $0.resolved(nowMilliseconds: testNow, old: model) }
                model = model.applying(resolved)
                try database.write(TreeWrite(changes: resolved, nowMilliseconds: testNow))
            }
            database.finishSettling()
            database.setObserver(commits)
            var promises: [Promise<TreeOutcome>] = []
            for number in 0..<12 {
                var changes: [TreeChange] = []
                let count = number % 4 == 0 ? 16 : 1 + trees.random.below(2)
                while changes.count < count { changes += trees.changes().filter { !$0.node.dependsOnPresent } }
                if count == 16 { wide += 1 }
                let requester = Requester(account: 1, connection: UInt64(number), isAdministrator: false)
                let promise = Promise<TreeOutcome>()
                database.submit(TreeWrite(changes: changes, nowMilliseconds: testNow), for: requester) {
                    promise.give($0)
                }
                promises.append(promise)
            }
            for promise in promises { #expect(promise.wait().commit != nil, note) }
            for commit in commits.all.withLock({ $0 }) { model = model.applying(commit.changes) }
            #expect(try database.read { try $0.node(at: .root) } == model, note)
            #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [], note)
            database.finishSettling()
            database.finishBuilding()
            #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [], note)
            #expect(try contents(store) == (try canonical(model)), note)
            database.close()
        }
        #expect(wide > 50)
    }

    private func update(_ count: Int, _ value: (Int) -> Node, under base: String = "wide") -> TreeWrite {
        TreeWrite(
            changes: (0..<count).map { TreeChange(path: TreePath("\(base)/k\($0)/v"), node: value($0)) },
            nowMilliseconds: testNow)
    }

    /// Neither making, nor settling, nor another write meanwhile grows with the update.
    @Test(arguments: [500, 5_000]) func noTransactionDoesMoreThanASlice(count: Int) throws {
        var options = TreeWriterOptions.sliced(nodes: 100, records: 50)
        options.groupCostMax = 50
        let store = FaultyStore()
        let database = try open(store, options)
        defer { database.close() }
        let attacker = Requester(account: 1, connection: 1, isAdministrator: false)
        let values: [(Int) -> Node] = [
            { Node(.integer(Int64($0))) }, { $0 % 2 == 0 ? .empty : "other" }, { _ in .empty },
        ]
        for (number, value) in values.enumerated() {
            store.changesMax.store(0, ordering: .relaxed)
            let others = ContinuousWrites(to: database, connections: 2..<3) { _, count in
                TreeWrite((TreePath("wide/other/\(count % 7)"), Node(.integer(Int64(count)))))
            }
            let (outcome, beside) = others.count(beside: update(count, value), of: attacker)
            #expect(outcome.commit != nil)
            _ = others.end()
            #expect(others.failures == 0)
            #expect(beside > count / 100, "only \(beside) small writes were made beside the wide one")
            database.finishSettling()
            #expect(store.changesMax.load(ordering: .relaxed) <= 4 * 50 + 20, "update \(number)")
            let wanted = Node.empty.applying(update(count, value).changes)
            for key in [TreeKey("k0"), TreeKey("k1"), TreeKey("k\(count - 1)")] {
                let path = TreePath(keys: [TreeKey("wide"), key])
                #expect(try database.read { try $0.node(at: path) } == wanted.node(at: path))
            }
            #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [])
        }
        try database.write(TreeWrite(("wide", .empty)))
        database.finishSettling()
        #expect(try contents(store).isEmpty)
    }

    /// A priority beside large values, and a large value among many locations.
    @Test func largeValuesBesidePrioritiesAreMadeInSlices() throws {
        var options = TreeWriterOptions.sliced(nodes: 100, records: 50)
        options.groupCostMax = 50
        let store = FaultyStore()
        let database = try open(store, options)
        defer { database.close() }
        try database.define([TreeIndexDefinition(pattern: ["$a"], index: .child("x"))])
        let large = Node(
            children: (0..<3_000).map { number in
                (
                    TreeKey("k\(number)"),
                    Node(
                        children: [(TreeKey("x"), Node(.integer(Int64(number % 9))))],
                        priority: number % 3 == 0 ? 5 : nil)
                )
            }, priority: 8)
        var model = Node.empty
        for node in [large, 1, large, .empty] {
            store.changesMax.store(0, ordering: .relaxed)
            let write = TreeWrite(("a", node), ("b", 2), ("b/.priority", 3), ("c/d/e", node))
            try database.write(write)
            model = model.applying(write.changes)
            #expect(try database.read { try $0.node(at: .root) } == model)
            database.finishSettling()
            #expect(store.changesMax.load(ordering: .relaxed) <= 4 * 50 + 20)
            #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [])
        }
    }

    @Test func aReaderSeesOneOfTheTwoTreesAtEveryMoment() throws {
        let store = try LastingStore(.memory)
        var options = TreeWriterOptions.sliced(nodes: 10, records: 3)
        options.replacementLocationsMax = 0
        let database = try open(store, options)
        defer { database.close() }
        let updates = [
            update(40) { Node(.integer(Int64($0))) }, update(40) { $0 % 3 == 0 ? .empty : 7 }, update(40) { _ in "x" },
        ]
        try database.write(updates[2])
        var model = Node.empty.applying(updates[2].changes)
        for round in 0..<30 {
            let write = updates[round % updates.count]
            let before = model.hash
            model = model.applying(write.changes)
            let hashes: Set<String> = [before, model.hash]
            let promise = database.begin(write)
            for _ in 0..<50 { #expect(try database.read { hashes.contains(try $0.hash(at: .root)) }) }
            #expect(promise.wait().commit != nil)
            #expect(try database.read { try $0.hash(at: .root) } == model.hash)
        }
    }

    /// A write that replaces a location above much of a wide write doesn't wait for it: the wide one is made again.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aWriteAboveAWideOneComesBeforeIt() throws {
        var options = TreeWriterOptions.sliced(nodes: 500, records: 20)
        options.groupCostMax = 20
        let database = try open(try LastingStore(.memory), options)
        defer { database.close() }
        let attacker = Requester(account: 1, connection: 1, isAdministrator: false)
        let bystander = Requester(account: 1, connection: 2, isAdministrator: false)
        let count = 10_000
        let wide = Promise<TreeOutcome>()
        database.submit(update(count) { _ in 1 }, for: attacker) { wide.give($0) }
        // The location above is written as soon as the wide write is being made, and once more when it is made again.
        let above = [Promise<TreeOutcome>(), Promise<TreeOutcome>()]
        @Sendable func write(_ number: Int) {
            database.whenMakingWideUpdate {
                let mine = Node(children: [(TreeKey("mine"), Node(.integer(Int64(number))))])
                database.submit(TreeWrite(("wide", mine)), for: bystander) { outcome in
                    if number == 0 { write(1) }
                    above[number].give(outcome)
                }
            }
        }
        write(0)
        #expect(above[0].wait().commit != nil)
        let last = try #require(above[1].wait().commit).version
        let version = try #require(wide.wait().commit).version
        #expect(last < version)
        var wanted = Node.empty.applying(update(count) { _ in 1 }.changes)
        wanted = wanted.applying(TreeChange(path: "wide/mine", node: 1))
        #expect(try database.read { try $0.node(at: .root) } == wanted)
        database.finishSettling()
        #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [])
    }

    /// A wide write that others overtake repeatedly fails, and leaves no records behind.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aWideWriteIsGivenUpWhenTheDataChangesTooFast() throws {
        var options = TreeWriterOptions.sliced(nodes: 500, records: 20)
        options.groupCostMax = 20
        let store = try LastingStore(.memory)
        let database = try open(store, options)
        defer { database.close() }
        let attacker = Requester(account: 1, connection: 1, isAdministrator: false)
        let others = ContinuousWrites(to: database, connections: 2..<3) { _, _ in TreeWrite(("wide", 5)) }
        let (outcome, beside) = others.count(beside: update(10_000) { _ in 1 }, of: attacker)
        _ = others.end()
        guard case .failed(TreeWriter.tooFast) = outcome else {
            Issue.record("the wide write was made")
            return
        }
        #expect(beside >= Limits.treeAttemptsMax)
        database.finishSettling()
        let other = MemoryStore()
        let fresh = try open(other, TreeWriterOptions())
        defer { fresh.close() }
        try fresh.write(TreeWrite(("wide", 5)))
        #expect(try contents(store) == (try contents(other)))
    }

    /// Writes above, beside and below at once, from many connections: each is made.
    @Test func writesAboveAWideOneAreMade() throws {
        var options = TreeWriterOptions.sliced(nodes: 500, records: 20)
        options.groupCostMax = 20
        let database = try open(try LastingStore(.memory), options)
        defer { database.close() }
        let wide = Promise<TreeOutcome>()
        let attacker = Requester(account: 1, connection: 1, isAdministrator: false)
        database.submit(update(3_000) { _ in 1 }, for: attacker) { wide.give($0) }
        var above: [Promise<TreeOutcome>] = []
        for number in 0..<40 {
            let promise = Promise<TreeOutcome>()
            let path: TreePath = number % 2 == 0 ? "wide" : "beside/a"
            let requester = Requester(account: 1, connection: UInt64(2 + number), isAdministrator: false)
            database.submit(TreeWrite((path, Node(.integer(Int64(number))))), for: requester) { promise.give($0) }
            above.append(promise)
        }
        guard let version = wide.wait().commit?.version else {
            Issue.record("the wide write was not made")
            return
        }
        var last: (version: Int64, number: Int) = (0, -1)
        for (number, promise) in above.enumerated() {
            guard let commit = promise.wait().commit else {
                Issue.record("write \(number) was not made")
                return
            }
            if number % 2 == 0, commit.version > max(version, last.version) { last = (commit.version, number) }
        }
        let found = try database.read { try $0.node(at: "wide") }
        if last.number >= 0 {
            #expect(found == Node(.integer(Int64(last.number))))
        } else {
            #expect(found.childCount == 3_000)
        }
    }

    @Test func incrementsOfAWideWriteAddToThePresentValue() throws {
        let database = try open(try LastingStore(.memory), .sliced(nodes: 10, records: 3))
        defer { database.close() }
        let write = update(600) { Node(.deferred($0 % 3 == 0 ? .timestamp : .increment(1))) }
        let promises = (0..<4).map { _ in database.begin(write) }
        #expect(promises.allSatisfy { $0.wait().commit != nil })
        #expect(try database.read { try $0.value(at: "wide/k1/v") } == .integer(4))
        #expect(try database.read { try $0.value(at: "wide/k3/v") } == .integer(testNow))
    }

    /// A program that supports only grafts of ranges reads this as damage, and does not change the tree.
    @Test func anOlderProgramRejectsAShadowThatIsNotSettled() throws {
        let store = MemoryStore()
        let severed = SeveredStore(store)
        let database = try open(severed, .sliced(nodes: 10, records: 3))
        try database.write(update(600) { _ in 1 })
        severed.sever()
        database.close()
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let mark = try #require(try snapshot.get(.meta, TreeGraft.markKey))
        #expect(TreeIndex(id: 0, stored: mark) == nil)
        // Behind the ID there is a range, of five bytes at least.
        #expect(try snapshot.get(.meta, TreeGraft.rangesKey)?.count == 5)
        let again = try open(store, .sliced(nodes: 10, records: 3))
        defer { again.close() }
        let wanted = Node.empty.applying(update(600) { _ in 1 }.changes)
        #expect(try again.read { try $0.node(at: .root) } == wanted)
        again.finishSettling()
        #expect(try contents(store).keys.allSatisfy { $0[1] != PathCode.Space.staged })
    }
}
