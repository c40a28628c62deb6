#if DEBUG
import HearthConcurrency
import HearthModel
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine

/// Writers, readers and appliers of a `LoggedStore` in orders that rarely occur.
struct LogInterleavingTests {
    private static let accounts = 6

    /// Each snapshot shows a state between two transactions, and no earlier one than the last that was returned.
    @Test func snapshotsAreWholeInAnyOrderOfThreads() throws {
        let seed = TestRun.seed()
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        var applications = 0
        for number in 0..<TestRun.interleavings(150) {
            let run = InterleavedRun(seed: seed &+ UInt64(number))
            try run.prepare(Self.accounts)
            Interleaving.run(
                seed: seed &+ UInt64(number),
                [{ run.write() }, { run.read(Self.accounts) }, { run.read(Self.accounts) }])
            applications += run.store.statistics.applications
            #expect(try run.store.entryCount() == Self.accounts)
        }
        #expect(applications > 100)
    }

    /// The store is closed while others use it.
    @Test func anEndAtAnyTimeEndsAllUses() throws {
        let seed = TestRun.seed()
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        for number in 0..<TestRun.interleavings(100) {
            let run = InterleavedRun(seed: seed &+ UInt64(number))
            try run.prepare(Self.accounts)
            Interleaving.run(
                seed: seed &+ UInt64(number),
                [
                    { run.write() }, { run.read(Self.accounts) },
                    {
                        for _ in 0..<number { Interleaving.point() }
                        run.close()
                    },
                ])
            #expect(throws: Status.unavailable("over")) { try run.store.snapshot() }
        }
    }
}

private final class InterleavedRun: Sendable {
    let store: LoggedStore
    private let seed: UInt64
    private let folder = TemporaryFolder()
    private let written = Atomic(0)
    private let isClosed = Atomic(false)
    private let isOver = Atomic(false)

    init(seed: UInt64) {
        self.seed = seed
        var options = LoggedStoreOptions.simulated
        options.appliers = LogAppliers(threads: 2)
        options.idleMilliseconds = 0
        options.tableBytes = 500
        options.tableBytesOfLargeBase = 500
        options.tablesMax = 2
        options.sliceEntries = 2
        do throws(Status) {
            store = try LoggedStore(
                base: SwitchingStore(), logFolder: folder.path + "/log", name: "test", options: options)
        } catch { fatalError("\(error)") }
    }

    func prepare(_ accounts: Int) throws(Status) {
        try put(store, 0..<accounts, key(100))
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], key(0)) }
    }

    func write() {
        var random = SeededGenerator(seed: seed)
        defer { isOver.store(true, ordering: .releasing) }
        use { () throws(Status) in
            for number in 1..<25 {
                try store.write { transaction throws(Status) in
                    try transfer(transaction, &random)
                    try transaction.put(.meta, [1], key(number))
                }
                written.store(number, ordering: .releasing)
                if random.isOne(in: 3) { store.maintain() }
            }
        }
    }

    private func transfer(_ transaction: any StoreTransaction, _ random: inout SeededGenerator) throws(Status) {
        let found = try rows(transaction.scan(.entries, .all, reverse: false, values: true))
        let (from, to) = (random.pick(found), random.pick(found))
        if from.key == to.key { return }
        try transaction.put(.entries, from.key, key(number(from.value) - 1))
        try transaction.delete(.entries, to.key)
        var new = random.below(1000)
        while try transaction.get(.entries, key(new)) != nil { new += 1 }
        try transaction.put(.entries, key(new), key(number(to.value) + 1))
    }

    func read(_ accounts: Int) {
        use { () throws(Status) in
            while !isOver.load(ordering: .acquiring) {
                let least = written.load(ordering: .acquiring)
                let snapshot = try store.snapshot()
                defer { snapshot.close() }
                Interleaving.point()
                #expect(number(try snapshot.get(.meta, [1]) ?? []) >= least)
                let cursor = try snapshot.scan(.entries, .all, reverse: least % 2 == 0, values: true)
                let found = try rows(cursor)
                #expect(found.count == accounts)
                #expect(found.reduce(0) { $0 + number($1.value) } == 100 * accounts)
                #expect(try snapshot.count(.entries, .all, limit: .max) == accounts)
            }
        }
    }

    func close() {
        isClosed.store(true, ordering: .releasing)
        store.close(because: .unavailable("over"))
    }

    /// Failures are right when the store is closed.
    private func use(_ body: () throws(Status) -> Void) {
        do throws(Status) { try body() } catch {
            let mayFail = isClosed.load(ordering: .acquiring)
            #expect(mayFail && error == .unavailable("over"), "\(error)")
        }
    }

    private func number(_ value: [UInt8]) -> Int {
        Int(truncatingIfNeeded: value.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}

/// Threads switch around each use.
private final class SwitchingStore: Store {
    private let inner = MemoryStore()

    private let snapshots = Atomic(0)

    /// Sometimes slow: so that tables are frozen and applied before it begins.
    func snapshot() throws(Status) -> any Snapshot {
        let isSlow = snapshots.add(1, ordering: .relaxed).newValue % 4 == 0
        for _ in 0..<(isSlow ? 80 : 1) { Interleaving.point() }
        let snapshot = try inner.snapshot()
        Interleaving.point()
        return snapshot
    }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        Interleaving.point()
        let result = try inner.write(body)
        Interleaving.point()
        return result
    }

    func maintain() {}
    func close() { inner.close() }
    func close(because reason: Status) { inner.close(because: reason) }
}
#endif
