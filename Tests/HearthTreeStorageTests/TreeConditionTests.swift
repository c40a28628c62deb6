import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage

/// Conditions whose hashes are computed beside the writer.
@Suite struct TreeConditionTests {
    private let options: TreeWriterOptions
    private let database: TreeDatabase

    init() throws {
        var options = TreeWriterOptions()
        options.compareBytesMax = 200
        self.options = options
        database = try TreeDatabase(name: "test", store: MemoryStore(), clock: SystemClock(), options: options)
    }

    private func children(_ count: Int) -> Node {
        Node(children: (0..<count).map { (TreeKey("k\($0)"), Node(.integer(Int64($0)))) })
    }

    private func conditional(_ path: TreePath, _ node: Node, ifHash hash: String) -> TreeWrite {
        var write = TreeWrite((path, node))
        write.condition = TreeWrite.Condition(path: path, hash: hash, reveals: true)
        return write
    }

    private func isStale(_ outcome: TreeOutcome) -> Bool { if case .stale = outcome { true } else { false } }

    @Test(arguments: [100, 1_000, 10_000])
    func aHashIsComputedOnceForManyConditions(count: Int) throws {
        try database.write(TreeWrite(("big", children(count))))
        for _ in 0..<50 {
            #expect(isStale(database.begin(conditional("big", 1, ifHash: "wrong")).wait()))
            try database.write(TreeWrite(("elsewhere", 1)))
        }
        #expect(options.counters.hashes.load(ordering: .relaxed) == 1)
        #expect(database.begin(conditional("big", 1, ifHash: children(count).hash)).wait().commit != nil)
        #expect(options.counters.hashes.load(ordering: .relaxed) == 1)
        #expect(isStale(database.begin(conditional("big", 2, ifHash: children(count).hash)).wait()))
    }

    @Test func aConcurrentChangeMakesItStale() throws {
        let node = children(500)
        try database.write(TreeWrite(("big", node)))
        // Both are queued before the hash is known: the second one sees the first.
        let first = database.begin(conditional("big", node.setting(TreeKey("k1"), to: 7), ifHash: node.hash))
        let second = database.begin(conditional("big", node.setting(TreeKey("k2"), to: 7), ifHash: node.hash))
        let outcomes = [first.wait(), second.wait()]
        #expect(outcomes.filter { $0.commit != nil }.count == 1)
        #expect(outcomes.filter { isStale($0) }.count == 1)
    }

    @Test func aBusyLocationAndItsParentMakeProgress() throws {
        let node = children(300)
        try database.write(TreeWrite(("a/big", node)))
        let isDone = Atomic(false)
        var rounds = 0
        let promise = database.begin(conditional("a/big", 1, ifHash: node.hash))
        let ended = Promise<TreeOutcome>()
        let thread = NamedThread.start("waits") {
            let outcome = promise.wait()
            isDone.store(true, ordering: .releasing)
            ended.give(outcome)
        }
        thread?.detach()
        while !isDone.load(ordering: .acquiring), rounds < 100_000 {
            // Each replaces the data above the location by the same data.
            try database.write(
                TreeWrite(
                    ("a", Node(children: [(TreeKey("big"), node), (TreeKey("n"), Node(.integer(Int64(rounds))))]))))
            rounds += 1
        }
        let outcome = ended.wait()
        #expect(outcome.commit != nil || isStale(outcome))
    }

    /// The SDK for the web computes a wrong hash for some numbers. Its transactions on them are made, on small locations and on
    /// those that are hashed beside the writer; the condition of another client is exact.
    @Test(arguments: [1, 200])
    func theHashOfTheWebSDKIsAcceptedFromSDKs(count: Int) throws {
        let wrong = Node(.integer(9_007_199_254_740_991))
        let neighbour = Node(.integer(9_007_199_254_740_992))
        let value = children(count).setting(TreeKey("wrong"), to: wrong)
        // Of this number the SDK has the bits of its neighbour.
        let web = children(count).setting(TreeKey("wrong"), to: neighbour).hash
        for _ in 0..<3 {
            try database.write(TreeWrite(("a", value)))
            #expect(isStale(database.begin(conditional("a", 1, ifHash: web)).wait()))
            var write = conditional("a", 1, ifHash: "wrong")
            write.condition?.isOfSDK = true
            #expect(isStale(database.begin(write).wait()))
            for hash in [web, value.hash] {
                write.condition?.hash = hash
                #expect(database.begin(write).wait().commit != nil)
                #expect(isStale(database.begin(write).wait()))
                try database.write(TreeWrite(("a", value)))
            }
        }
    }

    /// Counters that several clients increment by conditional writes: no increment is lost.
    @Test func transactionsLoseNothing() throws {
        let seed = TestRun.seed()
        var random = SeededGenerator(seed: seed)
        let filler = children(40)
        try database.write(
            TreeWrite(("n", Node(children: [(TreeKey("filler"), filler), (TreeKey("count"), Node(.integer(0)))]))))
        var made: Int64 = 0
        for round in 0..<300 {
            // Several begin on the version that they read, in any order.
            let attempts = try (0..<(1 + random.below(5))).map { client in
                let present = try database.read { try $0.node(at: "n") }
                let count = present.child("count").value?.number ?? -1
                let write = conditional(
                    "n", present.setting(TreeKey("count"), to: Node(.integer(Int64(count) + 1))), ifHash: present.hash)
                let promise = Promise<TreeOutcome>()
                database.submit(
                    write,
                    for: Requester(account: UInt64(client), connection: UInt64(client + 1), isAdministrator: false)
                ) { promise.give($0) }
                return promise
            }
            for attempt in attempts where attempt.wait().commit != nil { made += 1 }
            let count = try database.read { try $0.value(at: "n/count") }
            #expect(count == .integer(made), "seed \(seed), round \(round)")
        }
    }
}
