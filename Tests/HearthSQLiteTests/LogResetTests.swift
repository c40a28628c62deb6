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

/// No checkpoint begins on a fully copied log beside a writer: the precondition of SQLite's defect never arises.
struct LogResetTests {
    private let folder = TemporaryFolder()

    /// The observations and expectations of one run.
    private final class Run: Sendable {
        let figures = Mutex(CheckpointProbe.Figures())
        let failures = Mutex<[String]>([])
        let isOver = Atomic(false)
    }

    private func open(_ run: Run) throws(Status) -> SQLiteStore {
        var options = SQLiteStoreOptions.shortWAL
        options.bounds.quietPages = 1
        options.checkpointConnectionOpened = { connection in
            CheckpointProbe.install(connection) { change in run.figures.withLock { change(&$0) } }
        }
        return try SQLiteStore(path: folder.path + "/a.sqlite", options: options)
    }

    /// Forces checkpoints at moments that a seed determines, until the run is over.
    private func force(_ store: SQLiteStore, _ run: Run, seed: UInt64) -> NamedThread {
        testThread {
            var generator = SeededGenerator(seed: seed)
            while !run.isOver.load(ordering: .acquiring) {
                if generator.isOne(in: 4) { store.forceCheckpoint() } else { store.maintain() }
                for _ in 0..<generator.below(200) { sched_yield() }
            }
        }
    }

    private func read(_ store: SQLiteStore, _ run: Run, seed: UInt64) -> NamedThread {
        testThread {
            var generator = SeededGenerator(seed: seed)
            while !run.isOver.load(ordering: .acquiring) {
                do throws(Status) {
                    let snapshot = try store.snapshot()
                    defer { snapshot.close() }
                    for _ in 0..<generator.number(1..<20) {
                        let value = try snapshot.get(.documents, key(generator.below(60)))
                        if let value, value.first != value.last { run.failures.withLock { $0.append("torn") } }
                    }
                } catch {
                    if error.code != .unavailable { run.failures.withLock { $0.append("\(error)") } }
                }
            }
        }
    }

    @Test(arguments: TestRun.fixedSeedsAndNewOne)
    func checkpointsAtRandomMomentsLoseNothing(seed: UInt64) throws {
        let run = Run()
        var generator = SeededGenerator(seed: seed)
        var expected: [Int: [UInt8]] = [:]
        let store = try open(run)
        let threads = [
            force(store, run, seed: seed &+ 1), force(store, run, seed: seed &+ 2), read(store, run, seed: seed &+ 3),
            read(store, run, seed: seed &+ 4),
        ]
        // On a busy machine checkpoints are rare; otherwise nothing would be tested.
        func isTried(_ figures: CheckpointProbe.Figures) -> Bool { figures.passive > 10 && figures.locked > 10 }
        for round in 0..<40_000 where round < 1500 || !isTried(run.figures.withLock({ $0 })) {
            let number = generator.below(60)
            let value = Array(repeating: UInt8(round & 0xFF), count: generator.number(1..<12_000))
            try store.write { transaction throws(Status) in try transaction.put(.documents, key(number), value) }
            expected[number] = value
        }
        run.isOver.store(true, ordering: .releasing)
        for thread in threads { thread.join() }
        let statistics = store.statistics
        store.close()
        let figures = run.figures.withLock { $0 }
        #expect(run.failures.withLock { $0 } == [], "seed \(seed)")
        #expect(figures.passiveOnCopiedLog == 0, "seed \(seed)")
        #expect(statistics.unsafeCheckpoints == 0, "seed \(seed)")
        #expect(isTried(figures), "seed \(seed): \(figures)")
        let again = try SQLiteStore(path: folder.path + "/a.sqlite")
        #expect(try again.damage(max: 10) == [], "seed \(seed)")
        let snapshot = try again.snapshot()
        for (number, value) in expected { #expect(try snapshot.get(.documents, key(number)) == value, "seed \(seed)") }
    }

    @Test func requestsFromBeforeALogRestartAreDropped() throws {
        let run = Run()
        let store = try open(run)
        for round in 0..<50 {
            try store.write { transaction throws(Status) in
                try transaction.put(.documents, key(round), Array(repeating: 1, count: 40_000))
            }
        }
        #expect(eventually { !store.isCheckpointing })
        let before = run.figures.withLock { $0 }
        // Nothing was committed since the log was copied: there is no work, however often it is requested.
        for _ in 0..<10 {
            store.maintain()
            #expect(eventually { !store.isCheckpointing })
        }
        let after = run.figures.withLock { $0 }
        #expect(after.passive - before.passive <= 1 && after.passiveOnCopiedLog == 0)
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func aCommitWaitsForAReaderThatHasTheLockOfWriters() throws {
        let store = try SQLiteStore(path: folder.path + "/b.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        let reader = try Connection(
            path: folder.path + "/b.sqlite", configuration: ["PRAGMA wal_autocheckpoint = 0"])
        try reader.execute("BEGIN IMMEDIATE", "cannot lock")
        let failure = Mutex<Status?>(nil)
        let writer = testThread {
            do throws(Status) {
                try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [2]) }
            } catch {
                failure.withLock { $0 = error }
            }
        }
        #expect(eventually { store.counters.writerWaits.load(ordering: .relaxed) > 0 })
        try reader.execute("ROLLBACK", "cannot unlock")
        writer.join()
        #expect(failure.withLock { $0 } == nil)
        reader.close()
    }

    @Test func theIndexOfTheLogIsRead() throws {
        let store = try SQLiteStore(path: folder.path + "/b.sqlite")
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        let connection = try Connection(
            path: folder.path + "/b.sqlite", configuration: ["PRAGMA wal_autocheckpoint = 0"])
        #expect(try connection.number("SELECT count(*) FROM sqlite_schema", "read") > 0)
        let pages = UInt32(store.counters.walPages.load(ordering: .relaxed))
        #expect(connection.logIndex == LogIndex(pages: pages, copiedPages: 0))
        _ = try connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        #expect(connection.logIndex == LogIndex(pages: pages, copiedPages: pages))
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [2]) }
        #expect(connection.logIndex?.isFullyCopied == false && connection.logIndex?.copiedPages == 0)
        connection.close()
    }

    @Test(arguments: [
        (3_006_023, false), (3_007_000, true), (3_040_001, true), (3_044_005, true), (3_044_006, false),
        (3_045_000, true), (3_050_006, true), (3_050_007, false), (3_051_000, true), (3_051_002, true),
        (3_051_003, false), (3_052_000, false),
    ])
    func versionsWithTheDefectAreKnown(number: Int, hasDefect: Bool) {
        #expect(SQLiteLibrary.hasLogResetDefect(number) == hasDefect)
    }
}
