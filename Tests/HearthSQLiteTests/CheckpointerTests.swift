import HearthModel
import HearthDocuments
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthSQLite

/// The WAL stays short.
struct CheckpointerTests {
    private let folder = TemporaryFolder()

    private func open(walPages: Int, walPagesMax: Int) throws(Status) -> SQLiteStore {
        var options = SQLiteStoreOptions()
        options.bounds.patienceMillisecondsMax = 20
        options.bounds.walPages = walPages
        options.bounds.walPagesMax = walPagesMax
        options.bounds.quietPages = 1
        options.bounds.lockedPages = 20
        return try SQLiteStore(path: folder.path + "/a.sqlite", options: options)
    }

    /// A commit of about ten pages.
    private func commit(_ store: SQLiteStore, _ round: Int) throws(Status) {
        try store.write { transaction throws(Status) in
            try transaction.put(.documents, key(round % 50), Array(repeating: UInt8(round & 0xFF), count: 40_000))
        }
    }

    private var walPages: Int { (folder.size("a.sqlite-wal") ?? 0) / (FileFormat.pageSizeBytes + 24) }

    @Test func theLogStaysShortUnderAWriterAndReaders() throws {
        let store = try open(walPages: 200, walPagesMax: 1000)
        let isOver = Atomic(false)
        let failures = Mutex<[String]>([])
        let threads = (0..<2).map { _ in
            testThread {
                while !isOver.load(ordering: .acquiring) {
                    do throws(Status) {
                        let snapshot = try store.snapshot()
                        let cursor = try snapshot.scan(.documents, .all, reverse: false, values: true)
                        for row in try rows(cursor) where row.value.first != row.value.last {
                            failures.withLock { $0.append("torn") }
                        }
                        snapshot.close()
                    } catch {
                        // Taken away, which can happen on a busy machine.
                        if error.code != .unavailable { failures.withLock { $0.append("\(error)") } }
                    }
                }
            }
        }
        for round in 0..<400 {
            try commit(store, round)
            // 1,000 and those of one commit.
            #expect(walPages < 1030)
        }
        isOver.store(true, ordering: .releasing)
        for thread in threads { thread.join() }
        #expect(failures.withLock { $0 } == [])
        store.close()
        #expect(folder.size("a.sqlite-wal") == nil)
    }

    @Test func theLogShrinksAfterALongSnapshot() throws {
        let store = try open(walPages: 200, walPagesMax: 100_000)
        for round in 0..<50 { try commit(store, round) }
        let long = try store.snapshot()
        for round in 50..<300 { try commit(store, round) }
        #expect(walPages > 1000)
        #expect(try long.get(.documents, key(7))?.first == 7)
        long.close()
        #expect(
            eventually {
                store.maintain()
                return walPages == 0
            })
        #expect(try store.snapshot().get(.documents, key(7))?.first == UInt8(257 & 0xFF))
    }

    @Test func anIdleReaderDoesNotPreventALogRestart() throws {
        let store = try open(walPages: 100_000, walPagesMax: 100_000)
        for round in 0..<15 { try commit(store, round) }
        // Becomes idle with the present state, which it reads from the log.
        try store.snapshot().close()
        #expect(
            eventually {
                store.maintain()
                let pages = store.counters.walPages.load(ordering: .relaxed)
                return store.counters.copiedPages.load(ordering: .relaxed) == pages && !store.isCheckpointing
            })
        let before = walPages
        for round in 50..<60 { try commit(store, round) }
        #expect(walPages == before)
    }

    @Test func aSnapshotThatHoldsTooMuchIsRevoked() throws {
        let store = try open(walPages: 200, walPagesMax: 1000)
        for round in 0..<50 { try commit(store, round) }
        let long = try store.snapshot()
        let cursor = try long.scan(.documents, .all, reverse: false, values: false)
        #expect(try cursor.next())
        var round = 50
        var refusal: Status?
        let isTaken = eventually {
            do throws(Status) {
                try commit(store, round)
                round += 1
                _ = try long.get(.documents, key(7))
            } catch {
                refusal = error
            }
            return refusal != nil
        }
        #expect(isTaken && refusal?.code == .unavailable)
        #expect(throws: Status.self) { try cursor.next() }
        long.close()
        let short = try store.snapshot()
        #expect(try short.get(.documents, key(7)) != nil)
        short.close()
        #expect(
            eventually {
                store.maintain()
                return walPages <= 400
            })
    }

    @Test func droppedStoresEndTheirThreads() throws {
        for _ in 0..<20 {
            let store = try open(walPages: 20, walPagesMax: 1000)
            for round in 0..<5 { try commit(store, round) }
            store.maintain()
        }
        #expect(folder.size("a.sqlite-wal") == nil)
    }
}
