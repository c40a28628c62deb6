import Glibc
import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage

/// Large writes, which are made in slices.
@Suite struct TreeReplacementTests {
    private static let definitions = [
        TreeIndexDefinition(pattern: ["big"], index: .child("x")),
        TreeIndexDefinition(pattern: ["$a"], index: .value),
        TreeIndexDefinition(pattern: [], index: .child("big/k1/x")),
    ]

    private func children(_ count: Int, _ value: Int) -> Node {
        Node(
            children: (0..<count).map { number in
                let string = number % 5 == 0 ? String(repeating: "long", count: 200) : "s\(number % 3)"
                return (
                    TreeKey("k\(number)"),
                    Node(
                        children: [
                            (TreeKey("x"), Node(.integer(Int64(value + number)))),
                            (TreeKey("y"), Node(.string(string))),
                        ],
                        priority: number % 4 == 0 ? .integer(Int64(number)) : nil)
                )
            })
    }

    private func open(_ store: any Store, _ options: TreeWriterOptions) throws -> TreeDatabase {
        try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
    }

    private func canonical(_ model: Node) throws -> [[UInt8]: [UInt8]] {
        let store = MemoryStore()
        let database = try TreeDatabase(name: "other", store: store, clock: SystemClock())
        defer { database.close() }
        try database.define(Self.definitions)
        try database.write(TreeWrite((.root, model)))
        return try contents(store)
    }

    /// Every operation of the store may fail, or be the last before the process ends: the tree is the earlier or the
    /// later one, and all staged records are deleted.
    @Test(arguments: [false, true], [false, true])
    func aFailureAnywhereLeavesOneOfTheTwoTrees(isCrash: Bool, isWide: Bool) throws {
        var options = TreeWriterOptions.sliced(nodes: 10, records: 7)
        if isWide { options.replacementLocationsMax = 0 }
        options.compareBytesMax = 1 << 16
        let before = Node(
            children: [
                (TreeKey("big"), children(12, 0)), (TreeKey("other"), Node(.integer(1))),
                (TreeKey("third"), children(4, 3)),
            ])
        let writes = [
            TreeWrite(("big", children(9, 100))), TreeWrite(("big", .empty)),
            TreeWrite(("big", children(3, 5)), ("third", children(20, 6)), ("other/new", 2)),
        ]
        for (number, write) in writes.enumerated() {
            let all = try run(write, before, options, failingAt: nil, isCrash: isCrash, "write \(number)").operations
            #expect(all > 60)
            var failures = 0
            for operation in TestRun.part(of: all) {
                let note: Comment = "write \(number), operation \(operation)"
                let isMade = try run(write, before, options, failingAt: operation, isCrash: isCrash, note).isMade
                if !isMade { failures += 1 }
            }
            #expect(failures > 3 && failures < all, "write \(number): \(failures) of \(all)")
        }
    }

    /// - Returns: whether the write was made, and the number of operations of the store.
    private func run(
        _ write: TreeWrite, _ before: Node, _ options: TreeWriterOptions, failingAt operation: Int?, isCrash: Bool,
        _ note: Comment
    ) throws -> (isMade: Bool, operations: Int) {
        let store = FaultyStore()
        var severed = SeveredStore(store)
        var database = try open(severed, options)
        try database.define(Self.definitions)
        try database.write(TreeWrite((.root, before)))
        database.finishSettling()
        database.finishBuilding()
        store.fail(at: operation)
        let outcome = database.begin(write).wait()
        let isMade = outcome.commit != nil
        if operation == nil { database.finishSettling() }
        if let operation, !isCrash {
            // It may hit background work.
            while !database.isSettled, store.operations <= operation { sched_yield() }
        }
        let operations = store.operations
        // No further operation reaches the disk.
        if isCrash { severed.sever() }
        store.fail(at: nil)
        if isCrash {
            database.close()
            severed = SeveredStore(store)
            database = try open(severed, options)
        }
        let expected = isMade ? before.applying(write.changes) : before
        #expect(try database.read { try $0.node(at: .root) } == expected, note)
        #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [], note)
        // Background work that failed continues with the next write.
        try database.write(TreeWrite(("touch", 1)))
        try database.write(TreeWrite(("touch", .empty)))
        database.finishSettling()
        #expect(try contents(store) == (try canonical(expected)), note)
        database.close()
        return (isMade, operations)
    }

    @Test func aReaderSeesOneOfTheTwoTreesAtEveryMoment() throws {
        let store = try LastingStore(.memory)
        let database = try open(store, .sliced(nodes: 10, records: 3))
        defer { database.close() }
        let trees = (0..<6).map { children(10 + $0 * 3, $0 * 1000) }
        let hashes = Set(trees.map(\.hash))
        try database.write(TreeWrite(("big", trees[0])))
        for round in 1...30 {
            let promise = database.begin(TreeWrite(("big", trees[round % trees.count])))
            var reads = 0
            while reads < 50 {
                #expect(try database.read { hashes.contains(try $0.hash(at: "big")) })
                reads += 1
            }
            #expect(promise.wait().commit != nil)
            #expect(try database.read { try $0.hash(at: "big") } == trees[round % trees.count].hash)
        }
    }

    /// The work of one transaction doesn't grow with the write.
    @Test(arguments: [1, 10, 100])
    func aLargeWriteIsMadeInPiecesOfOneSize(factor: Int) throws {
        let store = CountingStore()
        var options = TreeWriterOptions()
        options.replacementNodesMin = 50
        options.slices.recordsMax = 40
        let database = try open(store, options)
        defer { database.close() }
        for write in [TreeWrite(("big", children(20 * factor, 1))), TreeWrite(("big", .empty))] {
            try database.write(write)
            database.finishSettling()
        }
        #expect(store.changesMax <= 2 * 40 + 10)
        let total = store.changes
        #expect(total <= 20 * factor * 6 * 8 + 100)
    }

    /// Few nodes may be large: bytes count as well, of written, replaced and removed data.
    @Test(arguments: [10, 100])
    func fewNodesWithLongStringsAreWrittenAndRemovedInPieces(count: Int) throws {
        let store = CountingStore()
        var options = TreeWriterOptions()
        options.replacementBytesMin = 100_000
        options.slices.bytesMax = 50_000
        let database = try open(store, options)
        defer { database.close() }
        let strings = { (letter: String) in
            Node(
                children: (0..<count).map { number in
                    (TreeKey("k\(number)"), Node(.string(String(repeating: letter, count: 20_000))))
                })
        }
        for node in [strings("a"), strings("b"), 1, strings("c"), .empty] {
            store.forget()
            try database.write(TreeWrite(("big", node)))
            database.finishSettling()
            #expect(try database.read { try $0.node(at: "big") } == node)
            #expect(store.bytesMax < 50_000 + 20_000 + 1_000)
            #expect(store.stringsMax <= Slice.stringsAtATime)
        }
        #expect(try contents(store).isEmpty)
    }

    @Test func othersAreServedWhileALargeWriteIsMade() throws {
        let store = CountingStore()
        var options = TreeWriterOptions()
        options.replacementNodesMin = 50
        options.slices.recordsMax = 10
        let database = try open(store, options)
        defer { database.close() }
        let attacker = Requester(account: 1, connection: 1, isAdministrator: false)
        let bystander = Requester(account: 1, connection: 2, isAdministrator: false)
        let (begun, queued) = (Promise<Void>(), Promise<Void>())
        let (large, last) = (Promise<TreeOutcome>(), Promise<Void>())
        let isDone = Atomic(false)
        let before = Atomic(0)
        // Without this the large write might be made before this thread has the time to submit the others.
        database.perform { _ in
            begun.give(())
            queued.wait()
        }
        begun.wait()
        database.submit(TreeWrite(("big", children(2000, 1))), for: attacker) { outcome in
            isDone.store(true, ordering: .releasing)
            large.give(outcome)
        }
        for number in 0..<100 {
            database.submit(TreeWrite(("small", Node(.integer(Int64(number))))), for: bystander) { outcome in
                #expect(outcome.commit != nil)
                if !isDone.load(ordering: .acquiring) { before.add(1, ordering: .relaxed) }
                if number == 99 { last.give(()) }
            }
        }
        queued.give(())
        last.wait()
        let count = before.load(ordering: .relaxed)
        #expect(count > 20, "only \(count) small writes were made beside the large one")
        #expect(large.wait().commit != nil)
    }

    /// However much is written or removed, and at however many locations, one transaction does no more than a slice.
    @Test(arguments: [1, 100, 500], [false, true])
    func noTransactionDoesMoreThanASlice(locations: Int, isRemoval: Bool) throws {
        var options = TreeWriterOptions.sliced(nodes: 100, records: 50)
        options.groupCostMax = 50
        let store = FaultyStore()
        let database = try open(store, options)
        defer { database.close() }
        let count = 4_000 / locations
        var before: [TreeChange] = []
        for location in 0..<locations {
            let path = TreePath("a/p\(location)")
            before.append(TreeChange(path: path, node: children(count, 1)))
            try database.write(TreeWrite(changes: [before[location]], nowMilliseconds: testNow))
        }
        database.finishSettling()
        store.changesMax.store(0, ordering: .relaxed)
        let after = before.map { TreeChange(path: $0.path, node: isRemoval ? .empty : children(count, 2)) }
        try database.write(TreeWrite(changes: after, nowMilliseconds: testNow))
        database.finishSettling()
        #expect(try database.read { try $0.node(at: .root) } == Node.empty.applying(after))
        // Each record of a slice is put and deleted; the graft's own records are added to it.
        #expect(store.changesMax.load(ordering: .relaxed) <= 2 * 50 + 10)
    }

    @Test func aConnectionsWritesStayInTheirOrder() throws {
        let database = try open(try LastingStore(.memory), .sliced(nodes: 10, records: 3))
        defer { database.close() }
        let connection = Requester(account: 1, connection: 7, isAdministrator: false)
        let order = Mutex<[Int]>([])
        let last = Promise<Int>()
        for round in 0..<20 {
            let node = round % 2 == 0 ? children(20, round) : Node(.integer(Int64(round)))
            database.submit(TreeWrite(("big", node)), for: connection) { _ in order.withLock { $0.append(2 * round) } }
            database.perform(for: connection) { view in
                let present = (try? view.node(at: "big")) ?? .empty
                order.withLock { $0.append(present == node ? 2 * round + 1 : -1) }
                if round == 19 { last.give(1) }
            }
        }
        _ = last.wait()
        #expect(order.withLock { $0 } == Array(0..<40))
    }

    @Test func incrementsInALargeWriteAddToThePresentValue() throws {
        let database = try open(try LastingStore(.memory), .sliced(nodes: 10, records: 3))
        defer { database.close() }
        let node = Node(
            children: (0..<30).map { (TreeKey("k\($0)"), Node(.deferred($0 % 3 == 0 ? .timestamp : .increment(1)))) })
        let promises = (0..<6).map { _ in database.begin(TreeWrite(("n", node))) }
        #expect(promises.allSatisfy { $0.wait().commit != nil })
        #expect(try database.read { try $0.value(at: "n/k1") } == .integer(6))
        #expect(try database.read { try $0.value(at: "n/k3") } == .integer(testNow))
    }

    @Test func anOlderProgramRejectsATreeThatIsNotSettled() throws {
        let store = MemoryStore()
        let severed = SeveredStore(store)
        let database = try open(severed, .sliced(nodes: 10, records: 3))
        try database.write(TreeWrite(("big", children(500, 1))))
        severed.sever()
        database.close()
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        // Such a program reads this at its start as the record of an index.
        let mark = try #require(try snapshot.get(.meta, TreeGraft.markKey))
        #expect(TreeIndex(id: 0, stored: mark) == nil)
        let again = try open(store, .sliced(nodes: 10, records: 3))
        defer { again.close() }
        #expect(try again.read { try $0.node(at: "big") } == children(500, 1))
        again.finishSettling()
        #expect(try contents(store).keys.allSatisfy { $0[1] != PathCode.Space.staged })
    }
}

/// A store whose operations can be cut off, as at the end of a process; its data remains.
final class SeveredStore: Store {
    private let inner: any Store
    private let writesLeft = Atomic(Int.max)

    init(_ inner: any Store) { self.inner = inner }

    func sever(afterWrites count: Int = 0) { writesLeft.store(count, ordering: .sequentiallyConsistent) }

    private func check() throws(Status) {
        if writesLeft.load(ordering: .sequentiallyConsistent) <= 0 { throw .unavailable("The process has ended.") }
    }

    func snapshot() throws(Status) -> any Snapshot {
        try check()
        return try inner.snapshot()
    }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        try inner.write { transaction throws(Status) in
            let result = try body(transaction)
            try check()
            writesLeft.subtract(1, ordering: .sequentiallyConsistent)
            return result
        }
    }

    func maintain() {}
    func close() {}
}

/// A store in memory that counts the changes of its transactions.
final class CountingStore: Store {
    private let inner = MemoryStore()
    private let counts = Mutex((all: 0, max: 0, bytesMax: 0, stringsMax: 0))

    var changes: Int { counts.withLock { $0.all } }
    /// Of one transaction.
    var changesMax: Int { counts.withLock { $0.max } }
    /// The bytes that one transaction has put.
    var bytesMax: Int { counts.withLock { $0.bytesMax } }
    /// The number of long strings that were deleted by one call.
    var stringsMax: Int { counts.withLock { $0.stringsMax } }

    func forget() { counts.withLock { $0 = (0, 0, 0, 0) } }

    func snapshot() throws(Status) -> any Snapshot { try inner.snapshot() }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        try inner.write { transaction throws(Status) in
            let counting = CountingTransaction(transaction)
            let result = try body(counting)
            counts.withLock { counts in
                counts.all += counting.changes
                counts.max = max(counts.max, counting.changes)
                counts.bytesMax = max(counts.bytesMax, counting.bytes)
                counts.stringsMax = max(counts.stringsMax, counting.stringsMax)
            }
            return result
        }
    }

    func maintain() {}
    func close() { inner.close() }
}

private final class CountingTransaction: StoreTransaction {
    private let inner: any StoreTransaction
    private(set) var changes = 0
    private(set) var bytes = 0
    private(set) var stringsMax = 0

    init(_ inner: any StoreTransaction) { self.inner = inner }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? { try inner.get(keyspace, key) }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        try inner.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try inner.count(keyspace, range, limit: limit)
    }

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        bytes += key.count + value.count
        changes += 1
        try inner.put(keyspace, key, value)
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        changes += 1
        try inner.delete(keyspace, key)
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        let count = try inner.delete(keyspace, range, limit: limit)
        changes += count
        if keyspace == .documents { stringsMax = max(stringsMax, count) }
        return count
    }

    func close() { inner.close() }
}
