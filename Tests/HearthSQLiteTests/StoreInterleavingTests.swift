#if DEBUG
import CSQLite
import Glibc
import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthSQLite

/// The writer, readers, the checkpointer and the end of a store in orders that seeds determine.
///
/// 10,000 orders: HEARTH_TEST_INTERLEAVINGS=10000.
struct StoreInterleavingTests {
    static let count = TestRun.interleavings(200)

    private final class Run: Sendable {
        let figures = Mutex(CheckpointProbe.Figures())
        let failures = Mutex<[String]>([])
        let cache = CacheBudget(bytesMax: 256 << 10, eachBytesMax: 256 << 10, eachBytesMin: 32 << 10)
        let round = Atomic(0)

        func fail(_ string: String) { failures.withLock { $0.append(string) } }
    }

    /// The writer of another database.
    private final class OtherWriter: CacheHolder {
        func shrinkCacheUnlessBusy() {}
        var cachePagesNow: Int { 0 }
    }

    private static let keys = 4
    private static let rounds = 12

    private func open(_ folder: TemporaryFolder, _ run: Run, _ generator: inout SeededGenerator) throws(Status)
        -> SQLiteStore
    {
        var options = SQLiteStoreOptions()
        options.bounds.walPages = generator.number(8..<60)
        options.bounds.walPagesMax = generator.isOne(in: 3) ? options.bounds.walPages * 2 : 100_000
        options.bounds.quietPages = 1
        options.bounds.lockedPages = generator.number(1..<20)
        options.readersMax = 3
        options.longReadersMax = 2
        options.readerMemory = ReaderMemory(bytesMax: 256 << 10, readersMax: 4, readersIdleMax: 2)
        options.writerCache = run.cache
        options.checkpointConnectionOpened = { connection in
            CheckpointProbe.install(connection) { change in run.figures.withLock { change(&$0) } }
        }
        return try SQLiteStore(path: folder.path + "/a.sqlite", options: options)
    }

    /// Each commit writes one number to all keys.
    private func write(_ store: SQLiteStore, _ run: Run, seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for round in 1...Self.rounds {
            let bytes = Array(repeating: UInt8(round), count: generator.number(1..<9000))
            do throws(Status) {
                try store.write { transaction throws(Status) in
                    for number in 0..<Self.keys { try transaction.put(.documents, key(number), bytes) }
                }
                run.round.store(round, ordering: .relaxed)
            } catch {
                run.fail("write: \(error)")
            }
            if generator.isOne(in: 3) { store.maintain() }
            if generator.isOne(in: 4) { store.forceCheckpoint() }
        }
    }

    /// A snapshot shows one commit, none before the last that was acknowledged when it was taken.
    private func read(_ store: SQLiteStore, _ run: Run, seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<8 {
            let acknowledged = run.round.load(ordering: .relaxed)
            do throws(Status) {
                let snapshot = try store.snapshot(generator.isOne(in: 2) ? .long : .short)
                defer { snapshot.close() }
                if generator.isOne(in: 3) { snapshot.becomeLong() }
                var seen: Set<UInt8> = []
                for number in 0..<Self.keys {
                    let value = try snapshot.get(.documents, key(number))
                    if let value, value.first != value.last { run.fail("torn") }
                    seen.insert(value?.first ?? 0)
                    if generator.isOne(in: 2) { Interleaving.point() }
                }
                if seen.count != 1 { run.fail("of several commits: \(seen)") }
                if Int(seen.first ?? 0) < acknowledged { run.fail("an old state") }
            } catch {
                // Taken away, or there are too many: both are bounds of this test.
                if error.code != .unavailable, error.code != .resourceExhausted { run.fail("read: \(error)") }
            }
        }
    }

    private func oneOrder(seed: UInt64) throws -> CheckpointProbe.Figures {
        let folder = TemporaryFolder()
        let run = Run()
        var generator = SeededGenerator(seed: seed)
        let store = try open(folder, run, &generator)
        let isOver = Atomic(0)
        let closing: @Sendable () -> Void = {
            // The end comes when the writer has ended, or while other work is under way.
            while isOver.load(ordering: .relaxed) == 0 {
                let other = OtherWriter()
                run.cache.add(other)
                Interleaving.point()
                run.cache.remove(other)
            }
            store.close()
        }
        Interleaving.run(
            seed: seed,
            [
                {
                    write(store, run, seed: seed &+ 1)
                    isOver.store(1, ordering: .relaxed)
                }, { read(store, run, seed: seed &+ 2) }, { read(store, run, seed: seed &+ 3) }, closing,
            ])
        #expect(run.failures.withLock { $0 } == [], "seed \(seed)")
        let statistics = store.statistics
        #expect(statistics.shortSnapshots == 0 && statistics.longSnapshots == 0, "seed \(seed)")
        #expect(run.cache.count == 0, "seed \(seed)")
        #expect(statistics.unsafeCheckpoints == 0 && statistics.failedCheckpoints == 0, "seed \(seed)")
        #expect(folder.size("a.sqlite-wal") == nil, "seed \(seed)")
        let again = try SQLiteStore(path: folder.path + "/a.sqlite")
        #expect(try again.damage(max: 3) == [], "seed \(seed)")
        let snapshot = try again.snapshot()
        for number in 0..<Self.keys {
            #expect(try snapshot.get(.documents, key(number))?.first == UInt8(Self.rounds), "seed \(seed)")
        }
        return run.figures.withLock { $0 }
    }

    @Test func noOrderLosesOrTearsAnything() throws {
        var passive = 0
        var locked = 0
        for seed in 0..<UInt64(Self.count) {
            let figures = try oneOrder(seed: seed)
            #expect(figures.passiveOnCopiedLog == 0, "seed \(seed)")
            passive += figures.passive
            locked += figures.locked
        }
        // Otherwise nothing was tested.
        #expect(passive > Self.count / 4 && locked > Self.count / 4)
    }
}
#endif
