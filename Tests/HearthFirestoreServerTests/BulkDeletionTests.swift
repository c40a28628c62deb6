import HearthConcurrency
import HearthEngine
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthDocuments
@testable import HearthFirestoreServer

/// Deletions of collection groups beside others who write.
@Suite struct BulkDeletionTests {
    private func write(_ database: Database, _ path: String, _ value: Int64 = 1) -> Write {
        let path = ResourcePath(path.split(separator: "/").map(String.init))
        return Write(
            document: ResourceName(database: database.name, path: path),
            operation: .update(fields: MapValue([.init(name: "n", value: .integer(value))]), mask: nil))
    }

    private func database(count: Int, clock: any Clock = SystemClock()) async throws -> Database {
        let database = try Database(name: DatabaseName(project: "p"), store: MemoryStore(), clock: clock)
        for first in stride(from: 0, to: count, by: 250) {
            try await database.commit(
                (first..<min(first + 250, count)).map { write(database, "c/\(10_000 + $0)") })
        }
        return database
    }

    /// Writes two documents beside the first deletions: one that is there, and a new one.
    private final class Beside: EventRecorder {
        private let writes: [Write]
        private let database: Mutex<Database?>
        private let ended = Countdown(of: 2)

        init(_ database: Database, _ writes: [Write]) {
            self.writes = writes
            self.database = Mutex(database)
        }

        final class Countdown: Sendable {
            private let left: Atomic<Int>
            init(of count: Int) { left = Atomic(count) }
            func count() { left.subtract(1, ordering: .relaxed) }
            var isOver: Bool { left.load(ordering: .relaxed) == 0 }
        }

        var isOver: Bool { ended.isOver }

        func record(_ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction) {
            let first = database.withLock { database in
                defer { database = nil }
                return database
            }
            for write in first == nil ? [] : writes { first?.commit([write]) { [ended] _ in ended.count() } }
        }

        func ended(isDurable: Bool) {}
        func clear(in transaction: any StoreTransaction) {}
        var neededVersion: Int64? { nil }
    }

    /// Source: BulkDeleteDocuments: "Documents created or updated after the underlying system starts to process the request
    /// will not be deleted."
    @Test func documentsThatAreWrittenMeanwhileStay() async throws {
        let database = try await database(count: 3000)
        let beside = Beside(database, [write(database, "c/12999", 2), write(database, "c/9", 2)])
        database.setRecorder(beside)
        let control = TransferControl()
        try BulkDelete(database, ["c"]).run(control)
        #expect(await eventually { beside.isOver })
        let rest = try TransferData.documents(database)
        #expect(rest.keys.sorted() == ["c/12999", "c/9"])
        #expect(control.progress.documentCount == 2999 && control.progress.phase == .finalizing)
    }

    /// Those beside them in the same commit are written.
    @Test func writesThatMayFailAreLeftOut() async throws {
        let database = try await database(count: 10)
        let stale = Precondition.updateTime(Timestamp(microseconds: 1))
        var items = (0..<10).map { number in
            CommitRun.Item(
                write: Write(
                    document: ResourceName(database: database.name, path: ResourcePath(["c", "\(10_000 + number)"])),
                    operation: .delete, precondition: number % 4 == 1 ? stale : .none),
                sizeBytes: 100, positionBytes: 100 * (number + 1))
        }
        let rest = ["c/10001", "c/10005", "c/10009"]
        let (all, control) = (items, TransferControl())
        let run = CommitRun(database, makesEvents: true, control) { $0.code == .failedPrecondition }
        try run.write { () throws(Status) in items.isEmpty ? nil : items.removeFirst() }
        #expect(run.documentCount == 7 && control.progress.documentCount == 7)
        #expect(control.progress.sizeBytes == 1000)
        #expect(try TransferData.documents(database).keys.sorted() == rest)
        // Without that, they end the run.
        items = all
        let other = CommitRun(database, makesEvents: true, TransferControl())
        #expect(throws: Status.self) {
            try other.write { () throws(Status) in items.isEmpty ? nil : items.removeFirst() }
        }
        #expect(try TransferData.documents(database).keys.sorted() == rest)
    }

    /// A client may write as soon as it has the answer.
    @Test func itIsOfTheMomentOfTheRequest() async throws {
        let database = try await database(count: 2)
        let deletion = try BulkDelete(database, ["c"])
        try await database.commit([write(database, "c/10001", 2)])
        try deletion.run(TransferControl())
        #expect(try TransferData.documents(database).keys.sorted() == ["c/10001"])
    }

    private final class Events: EventRecorder {
        private let sets = Atomic(0)
        var count: Int { sets.load(ordering: .relaxed) }
        func record(_ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction) {
            sets.add(1, ordering: .relaxed)
        }
        func ended(isDurable: Bool) {}
        func clear(in transaction: any StoreTransaction) {}
        var neededVersion: Int64? { nil }
    }

    /// A document with what is below it, also when it is missing, and a collection with what is below its documents; triggers get
    /// no events.
    @Test(arguments: [
        ("a/1/b", ["a/1", "a/1/x/1", "a/10", "a/2", "ab/1", "q/missing/r/1"]),
        ("a/1", ["a/10", "a/2", "ab/1", "q/missing/r/1"]), ("a", ["ab/1", "q/missing/r/1"]),
        ("q/missing", ["a/1", "a/1/b/1", "a/1/b/1/c/1", "a/1/x/1", "a/10", "a/2", "ab/1"]),
        ("none/1", ["a/1", "a/1/b/1", "a/1/b/1/c/1", "a/1/x/1", "a/10", "a/2", "ab/1", "q/missing/r/1"]),
    ])
    func aPathIsDeletedWithAllThatIsBelow(_ path: String, _ rest: [String]) async throws {
        let database = try Database(name: DatabaseName(project: "p"), store: MemoryStore(), clock: SystemClock())
        let all = ["a/1", "a/1/b/1", "a/1/b/1/c/1", "a/1/x/1", "a/10", "a/2", "ab/1", "q/missing/r/1"]
        try await database.commit(all.map { write(database, $0) })
        let events = Events()
        database.setRecorder(events)
        let deletion = try BulkDelete(database, at: ResourcePath(path.split(separator: "/").map(String.init)))
        let before = events.count
        let control = TransferControl()
        try deletion.run(control)
        #expect(events.count == before)
        #expect(try TransferData.documents(database).keys.sorted() == rest)
        #expect(control.progress.documentCount == all.count - rest.count)
    }

    @Test func aDocumentThatATransactionHoldsIsWaitedFor() async throws {
        let clock = StoppedClock()
        let database = try await database(count: 10, clock: clock)
        try await database.hold(ResourcePath(["c", "10003"]))
        let ended = Promise<Status?>()
        let thread = testThread {
            do throws(Status) {
                try BulkDelete(database, ["c"]).run(TransferControl())
                ended.give(nil)
            } catch {
                ended.give(error)
            }
        }
        #expect(database.outlastsLocks(clock) { ended.isGiven })
        #expect(ended.wait() == nil)
        thread.join()
        #expect(try TransferData.documents(database).isEmpty)
    }

    @Test func itIsCancelledAndStopped() async throws {
        let database = try await database(count: 10)
        let service = TransferService(longReads: LongReads())
        let control = TransferControl()
        control.cancel()
        let ended = Promise<Status.Code?>()
        try service.delete(try BulkDelete(database, ["c"]), control) { result in
            if case .failure(let status) = result { ended.give(status.code) } else { ended.give(nil) }
        }
        #expect(ended.wait() == .cancelled)
        #expect(try TransferData.documents(database).count == 10)
        // They are not counted with exports and imports.
        let deletions = (0..<Limits.deletionsMax).map { _ in TransferControl() }
        #expect(await eventually { (try? service.enter(deletions[0], as: .deletion)) != nil })
        for control in deletions.dropFirst() {
            #expect(await eventually { (try? service.enter(control, as: .deletion)) != nil })
        }
        #expect(throws: Status.self) { try service.enter(TransferControl(), as: .deletion) }
        let transfer = TransferControl()
        try service.enter(transfer)
        for control in deletions + [transfer] { service.leave(control) }
        service.stop()
    }
}
