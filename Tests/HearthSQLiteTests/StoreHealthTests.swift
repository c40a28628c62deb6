import Glibc
import HearthModel
import HearthEngine
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthSQLite

/// The reports of a store when its disk fails commits, and when it accepts them again.
struct StoreHealthTests {
    private final class Journal: StoreObserver {
        let events = Mutex<[StoreEvent]>([])

        func store(_ name: String, reports event: StoreEvent) {
            #expect(name == "p/d")
            events.withLock { $0.append(event) }
        }

        var all: [StoreEvent] { events.withLock { $0 } }
    }

    private let folder = TemporaryFolder()
    private let journal = Journal()

    private func open(pagesMax: Int?) throws(Status) -> SQLiteStore {
        var options = SQLiteStoreOptions()
        options.pagesMax = pagesMax
        options.observer = journal
        options.retryMilliseconds = 5
        return try SQLiteStore(path: folder.path + "/a.sqlite", name: "p/d", options: options, folder: nil)
    }

    private func put(_ store: SQLiteStore, bytes: Int, of byte: UInt8 = 1) throws(Status) {
        try store.write { transaction throws(Status) in
            try transaction.put(.documents, [1], Array(repeating: byte, count: bytes))
        }
    }

    @Test func theFirstFailureAndTheRecoveryAreReportedOnce() throws {
        let store = try open(pagesMax: 60)
        // A folder exists at the path of the probe: the disk doesn't seem to have recovered.
        mkdir(folder.path + "/a.sqlite-probe", 0o700)
        for _ in 0..<5 { #expect(throws: Status.self) { try put(store, bytes: 400_000) } }
        // A commit that succeeds isn't the end of it: a smaller one may.
        try put(store, bytes: 100)
        #expect(throws: Status.self) { try put(store, bytes: 400_000) }
        #expect(journal.all.count == 1)
        guard case .commitsFail(let status) = journal.all.first else { return #expect(Bool(false)) }
        #expect(status.code == .unavailable && status.message.contains("No space left on device"))
        #expect(store.statistics.failedCommits == 6)
        // There are no more writes, and it is found out none the less.
        rmdir(folder.path + "/a.sqlite-probe")
        #expect(eventually { journal.all.count == 2 })
        #expect(journal.all.last == .commitsRecovered(failures: 6))
        #expect(folder.size("a.sqlite-probe") == nil)
        store.close()
        #expect(journal.all.last == .closed && journal.all.count == 3)
    }

    @Test func anErrorOfTheBodyIsNotADiskFailure() throws {
        let store = try open(pagesMax: nil)
        #expect(throws: Status.self) {
            try store.write { _ throws(Status) -> Void in throw .unavailable("as if") }
        }
        #expect(journal.all == [] && store.statistics.failedCommits == 0)
        store.close()
        #expect(throws: Status.self) { try put(store, bytes: 1) }
        #expect(journal.all == [.closed])
    }

    @Test func revokedSnapshotsAreReported() throws {
        var options = SQLiteStoreOptions.shortWAL
        options.bounds.walPagesMax = 200
        options.observer = journal
        let store = try SQLiteStore(path: folder.path + "/a.sqlite", name: "p/d", options: options, folder: nil)
        try put(store, bytes: 10)
        let long = try store.snapshot(.long)
        var byte: UInt8 = 0
        #expect(
            eventually {
                // Equal bytes are not written again.
                byte &+= 1
                do throws(Status) { try put(store, bytes: 40_000, of: byte) } catch { return false }
                return journal.all.contains(.snapshotsRevoked(1))
            })
        #expect(
            journal.all.contains {
                if case .logIsLong(let bytes) = $0 { bytes >= 50 * 4096 } else { false }
            })
        long.close()
        #expect(store.statistics.revokedSnapshots == 1 && store.statistics.longSnapshots == 0)
    }
}
