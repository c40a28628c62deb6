import HearthModel
import HearthEngine
import Synchronization
import Testing

@testable import HearthHost

/// The log and `/readyz` when disks fail.
struct StorageHealthTests {
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])

        var log: Log {
            Log(now: { Timestamp(microseconds: 0) }) { line in
                let string = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 1)[1]
                self.all.withLock { $0.append(string.trimmingPrefix(while: { $0 == " " }).description) }
            }
        }
    }

    @Test func readinessCoversAllStoresOfBothProducts() {
        let lines = Lines()
        let health = StorageHealth(log: lines.log)
        #expect(health.failure == nil)
        let first = StoreHealth(name: "p/a", observer: health.observer(of: .firestore))
        let second = StoreHealth(name: "p/a", observer: health.observer(of: .realtime))
        for _ in 0..<100 { first.commitFailed(.unavailable("The disk is full.")) }
        #expect(health.failure == "Commits fail: The disk is full.")
        second.commitFailed(.unavailable("The cable is out."))
        #expect(health.failingCount == 2 && health.failure?.hasPrefix("Commits fail: The disk is full.") == true)
        first.commitsRecovered()
        first.commitsRecovered()
        #expect(health.failure == "Commits fail: The cable is out.")
        // A closed or deleted database does not make the server unready.
        second.closed()
        second.commitFailed(.unavailable("too late"))
        #expect(health.failure == nil && health.failingCount == 0)
        #expect(
            lines.all.withLock { $0 } == [
                "error   commits fail database=p/a reason=\"The disk is full.\"\n",
                "error   commits fail namespace=p/a reason=\"The cable is out.\"\n",
                "info    commits succeed again database=p/a failures=100\n",
            ])
    }

    @Test func databasesThatCannotBeOpenedAreLoggedOnceAndLeaveTheServerReady() {
        let lines = Lines()
        let health = StorageHealth(log: lines.log)
        let observer = health.observer(of: .firestore)
        for _ in 0..<100 {
            observer.store("p/a", reports: .closed)
            observer.store("p/a", reports: .openFails(Status(.dataLoss, "It is noise."), file: "/d/p/a.sqlite"))
        }
        #expect(health.failure == nil && health.failingCount == 1)
        observer.store("p/a", reports: .opened)
        observer.store("p/a", reports: .opened)
        #expect(health.failingCount == 0)
        observer.store("p/a", reports: .openFails(Status(.dataLoss, "It is noise."), file: "/d/p/a.sqlite"))
        observer.store("p/a", reports: .deleted)
        #expect(health.failingCount == 0)
        let failure = "error   the database can't be opened database=p/a file=/d/p/a.sqlite reason=\"It is noise.\"\n"
        #expect(
            lines.all.withLock { $0 } == [failure, "info    the database can be opened again database=p/a\n", failure])
    }

    @Test func failedCheckpointsAreLoggedOnceAndLeaveTheServerReady() {
        let lines = Lines()
        let health = StorageHealth(log: lines.log)
        let store = StoreHealth(name: "p/a", observer: health.observer(of: .firestore))
        for _ in 0..<3 { store.checkpointFailed(.unavailable("Input/output error")) }
        #expect(store.areCheckpointsFailing && health.failure == nil)
        store.checkpointSucceeded()
        store.checkpointSucceeded()
        for length in [10, 20, 30] { store.log(isLong: length >= 20, bytes: length) }
        store.revoked(2)
        #expect(
            lines.all.withLock { $0 }.map { $0.split(separator: " ").first } == ["error", "info", "warning", "warning"])
    }

    @Test func aFileThatDoesNotFollowItsLogIsLoggedOnce() {
        let lines = Lines()
        let health = StorageHealth(log: lines.log)
        let store = StoreHealth(name: "p/a", observer: health.observer(of: .firestore))
        for _ in 0..<3 { store.applicationFailed(.unavailable("The disk is full.")) }
        for _ in 0..<3 { store.writes(areStalled: true) }
        #expect(health.failure == nil)
        for _ in 0..<3 { store.applicationSucceeded() }
        for _ in 0..<3 { store.writes(areStalled: false) }
        #expect(
            lines.all.withLock { $0 } == [
                "error   commits can't be copied from the log into the database's file, and the log grows database=p/a"
                    + " reason=\"The disk is full.\"\n",
                "warning commits wait: the database's file does not follow the log database=p/a\n",
                "info    the database's file follows the log again database=p/a failures=3\n",
                "info    commits no longer wait for the database's file database=p/a\n",
            ])
    }
}
