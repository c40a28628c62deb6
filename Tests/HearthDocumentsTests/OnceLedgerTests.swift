import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthDocuments
@testable import HearthEngine

/// Documents of the ledger are deleted when they are old, and no others.
@Suite struct OnceLedgerTests {
    private static let day = 86_400.0
    private let clock = StoppedClock()
    private let store = MemoryStore()

    private func open() throws -> Database { try Database(name: testDatabaseName, store: store, clock: clock) }

    private func create(_ database: Database, _ paths: String...) throws {
        for path in paths { try database.commit([.set(path, map(("n", .integer(1))))]) }
    }

    /// One step.
    private func step(_ database: Database, _ collection: String = "_once", limit: Int = 3) -> Result<Bool, Status> {
        let promise = Promise<Result<Bool, Status>>()
        database.deleteOldLedgerDocuments(of: collection, limit: limit) { promise.give($0) }
        return promise.wait()
    }

    private func sweep(_ database: Database, _ collection: String = "_once") throws {
        while try step(database, collection).get() {}
    }

    private func exist(_ database: Database, _ paths: String...) throws -> [Bool] {
        try paths.map { try database.fields($0) != nil }
    }

    private func records() throws -> Int {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try snapshot.count(.meta, KeyRange(prefix: OnceLedger.key), limit: .max)
    }

    private func problems() throws -> [String] { try IntegrityCheck.run(store).problems }

    @Test func oldDocumentsOfTheLedgerAreDeletedAndNoOthers() throws {
        let database = try open()
        try create(database, "_once/a", "_once/a/sub/x", "c/a", "c/a/_once/x", "_once2/a", "_onc/a")
        try sweep(database)
        for number in 0..<10 { try create(database, "_once/b\(number)") }
        clock.advance(seconds: 7 * Self.day)
        // Its age is that of its creation, not of its last change.
        try create(database, "_once/young", "_once/b1")
        try database.commit([.delete("_once/b2")])
        try create(database, "_once/b2")
        try sweep(database)
        #expect(try exist(database, "_once/a", "_once/b0", "_once/b9") == [true, true, true])
        clock.advance(seconds: Self.day + 1)
        try sweep(database)
        #expect(try exist(database, "_once/a", "_once/b0", "_once/b1", "_once/b9") == [false, false, false, false])
        #expect(
            try exist(
                database, "_once/young", "_once/b2", "_once/a/sub/x", "c/a", "c/a/_once/x", "_once2/a", "_onc/a")
                == [Bool](repeating: true, count: 7))
        #expect(try records() == 3 && problems().isEmpty)
        clock.advance(seconds: 8 * Self.day)
        try sweep(database)
        #expect(try exist(database, "_once/young", "_once/b2") == [false, false])
        #expect(try records() == 1 && problems().isEmpty)
    }

    @Test func deletionsMakeNoEventsAndListenersSeeThem() throws {
        let database = try open()
        let recorder = RecordingRecorder()
        database.setRecorder(recorder)
        let seen = Mutex<[String]>([])
        database.observe { set in
            for change in set.changes where change.after == nil {
                let path = DocumentKey.decode(change.key)?.string
                seen.withLock { $0.append(path ?? "") }
            }
        }
        try create(database, "_once/a", "_once/b")
        clock.advance(seconds: 9 * Self.day)
        try sweep(database)
        try database.commit([.delete("_once/none")])
        #expect(seen.withLock { $0.sorted() } == ["_once/a", "_once/b"])
        #expect(recorder.recorded == 2)
        // A deletion by somebody else makes one.
        try create(database, "_once/c")
        try database.commit([.delete("_once/c")])
        #expect(recorder.recorded == 4)
    }

    @Test func documentsFromBeforeAreFoundAfterARestart() throws {
        var database = try open()
        for number in 0..<10 { try create(database, "_once/d\(number)") }
        // Begun, and interrupted in the middle.
        #expect(try step(database).get() && step(database).get())
        database = try open()
        try create(database, "_once/d0a", "_once/z")
        try database.commit([.delete("_once/d1")])
        try sweep(database)
        #expect(try records() == 12 && problems().isEmpty)
        clock.advance(seconds: 9 * Self.day)
        try sweep(database)
        #expect(try database.fields("_once/d0") == nil && database.fields("_once/z") == nil)
        #expect(try records() == 1)
    }

    @Test func anotherCollectionOrNoneIsTheLedger() throws {
        let database = try open()
        try create(database, "_once/a", "_once/b", "_once/c", "done/a", "done/b", "done/c", "done/d")
        try sweep(database)
        #expect(try records() == 4)
        try sweep(database, "")
        #expect(try records() == 0 && problems().isEmpty)
        try create(database, "_once/d")
        try sweep(database, "_once")
        #expect(try records() == 5)
        // Back before the records are forgotten.
        #expect(try step(database, "done").get() && problems().isEmpty)
        try sweep(database, "_once")
        #expect(try records() == 5 && problems().isEmpty)
        try sweep(database, "done")
        #expect(try records() == 5 && problems().isEmpty)
        clock.advance(seconds: 9 * Self.day)
        try sweep(database, "")
        #expect(try exist(database, "_once/a", "done/a") == [true, true])
        try sweep(database, "done")
        #expect(try exist(database, "_once/a", "_once/d", "done/a", "done/d") == [true, true, false, false])
    }

    @Test func aWrongClockDeletesNothing() throws {
        var database = try open()
        try create(database, "_once/a")
        try sweep(database)
        clock.jump(microseconds: 30 * 86_400_000_000)
        try sweep(database)
        #expect(try exist(database, "_once/a") == [true])
        database = try open()
        try create(database, "_once/b")
        try sweep(database)
        #expect(try exist(database, "_once/a") == [true])
        // The clock says the same for an hour.
        clock.advance(seconds: 3700)
        try sweep(database)
        #expect(try exist(database, "_once/a", "_once/b") == [false, true])
    }

    @Test func aDocumentThatATransactionHoldsIsDeletedLater() throws {
        let database = try open()
        try create(database, "_once/a", "_once/b")
        try sweep(database)
        clock.advance(seconds: 9 * Self.day)
        let transaction = try database.beginRead(
            .newTransaction(.readWrite(retry: nil)), [.document(ResourcePath(["_once", "a"]))]
        ).waitForTransaction()
        let promise = Promise<Result<Bool, Status>>()
        database.deleteOldLedgerDocuments(of: "_once") { promise.give($0) }
        // Another call meanwhile does nothing.
        #expect(try step(database).get() == false)
        while !promise.isGiven {
            clock.advance(seconds: 1)
            database.tick()
        }
        #expect(try promise.wait().get() == false)
        #expect(try database.fields("_once/b") == nil)
        try database.rollback(transaction)
        try sweep(database)
        #expect(try database.fields("_once/a") == nil && problems().isEmpty)
    }

    @Test func aClearedDatabaseBeginsAnew() throws {
        let database = try open()
        try create(database, "_once/a")
        try sweep(database)
        try database.clear()
        #expect(try records() == 0)
        try create(database, "_once/b")
        try sweep(database)
        #expect(try records() == 2 && problems().isEmpty)
    }

    @Test func nothingIsWrittenWithoutALedger() throws {
        let database = try open()
        try create(database, "c/d")
        let before = database.statistics.groups
        clock.advance(seconds: 30 * Self.day)
        #expect(try step(database).get() == false)
        #expect(try database.statistics.groups == before && records() == 0)
    }

    @Test func damagedRecordsAreFoundAndDisappear() throws {
        let database = try open()
        try create(database, "_once/a", "_once/b")
        try sweep(database)
        let key = DocumentKey.encode(ResourcePath(["_once", "b"]))
        try store.write { transaction throws(Status) in
            let version = try transaction.document(key)?.createVersion ?? 0
            try OnceLedger.delete(OnceLedger.Entry(document: key, version: version), in: transaction)
            // Of a document that is not there, of another time, and of no document.
            for (path, version) in [("x", version), ("a", version - 5)] {
                let key = DocumentKey.encode(ResourcePath(["_once", path]))
                try transaction.put(.meta, OnceLedger.key + [1] + Database.encode(version) + key, [])
            }
            try transaction.put(.meta, OnceLedger.key + [1] + Database.encode(version) + [9], [])
        }
        #expect(try problems().count == 4)
        clock.advance(seconds: 9 * Self.day)
        try sweep(database)
        #expect(try exist(database, "_once/a", "_once/b") == [false, true])
        #expect(try problems().count == 1)
    }

    /// It stays, and the check finds it; the others are deleted.
    @Test func aDocumentThatCannotBeReadKeepsNoOther() throws {
        let database = try open()
        try create(database, "_once/a", "_once/b", "_once/c")
        try sweep(database)
        let key = DocumentKey.encode(ResourcePath(["_once", "a"]))
        try store.write { transaction throws(Status) in try transaction.put(.documents, key, [1, 2, 3]) }
        clock.advance(seconds: 9 * Self.day)
        try sweep(database)
        #expect(try exist(database, "_once/b", "_once/c") == [false, false])
        #expect(try problems().contains { $0.hasPrefix("_once/a: ") })
        // The state alone: no later step looks at it again.
        #expect(try records() == 1)
    }

    /// What was made before the clock of the machine was set has no age.
    @Test func documentsOfAnUnsetClockAreKept() throws {
        clock.set(microseconds: 5_000_000)
        var database = try open()
        try create(database, "_once/a")
        try sweep(database)
        clock.set(microseconds: 1_700_000_000_000_000)
        try create(database, "_once/b")
        try sweep(database)
        database = try open()
        clock.advance(seconds: 2 * 3600)
        try sweep(database)
        #expect(try exist(database, "_once/a", "_once/b") == [true, true])
        clock.advance(seconds: 9 * Self.day)
        try sweep(database)
        #expect(try exist(database, "_once/a", "_once/b") == [true, false])
    }

    @Test func recordsFollowRandomCommits() throws {
        let seed = TestRun.seed()
        var random = SeededGenerator(seed: seed)
        var database = try open()
        for round in 0..<300 {
            let paths = ["_once/a", "_once/b", "_once/c", "c/a", "_once/a/s/x"]
            let writes = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                let path = paths[Int.random(in: 0..<paths.count, using: &random)]
                return Bool.random(using: &random) ? Write.set(path, map(("n", .integer(1)))) : Write.delete(path)
            }
            try database.commit(writes)
            switch Int.random(in: 0..<12, using: &random) {
            case 0: _ = step(database, limit: 1)
            case 1: try sweep(database)
            case 2: database = try open()
            case 3: clock.advance(seconds: 3 * Self.day)
            case 4 where round % 5 == 0: _ = step(database, "")
            default: break
            }
            #expect(try problems().isEmpty, "seed \(seed), round \(round)")
        }
        clock.advance(seconds: 9 * Self.day)
        try sweep(database)
        #expect(try exist(database, "_once/a", "_once/b", "_once/c") == [false, false, false], "seed \(seed)")
    }
}

/// Counts what it gets.
final class RecordingRecorder: EventRecorder {
    private let count = Atomic<Int>(0)

    var recorded: Int { count.load(ordering: .relaxed) }

    func record(_ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction) throws(Status) {
        count.add(1, ordering: .relaxed)
    }

    func ended(isDurable: Bool) {}
    func clear(in transaction: any StoreTransaction) throws(Status) {}
    var neededVersion: Int64? { nil }
}
