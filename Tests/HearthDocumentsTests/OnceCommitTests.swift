import HearthModel
import HearthTestSupport
import Testing

@testable import HearthDocuments
@testable import HearthEngine

/// Commits with an id: which are made, how they are answered, and for how long.
@Suite struct OnceCommitTests {
    private let clock = StoppedClock()
    private let store = MemoryStore()

    private func open() throws -> Database { try Database(name: testDatabaseName, store: store, clock: clock) }

    private func increment(_ path: String = "c/d", by number: Int64 = 1) -> Write {
        Write(
            document: resource(path), operation: .update(fields: MapValue(), mask: []),
            transforms: [FieldTransform(path: FieldPath("n"), operation: .increment(.integer(number)))])
    }

    private func submit(
        _ database: Database, _ id: String, _ writes: [Write], in transaction: [UInt8]? = nil
    ) throws -> Promise<Result<CommitOutcome, Status>> {
        let promise = Promise<Result<CommitOutcome, Status>>()
        database.commit(
            writes, transaction: transaction, requester: .server, once: try OnceID(id, called: "id")
        ) { promise.give($0) }
        return promise
    }

    @discardableResult
    private func commit(
        _ database: Database, _ id: String, _ writes: [Write], in transaction: [UInt8]? = nil
    ) throws -> CommitOutcome {
        try submit(database, id, writes, in: transaction).wait().get()
    }

    private func code(_ body: () throws -> Void) -> Status.Code? {
        do {
            try body()
            return nil
        } catch { return (error as? Status)?.code }
    }

    private func number(_ database: Database, _ path: String = "c/d") throws -> Value? {
        try database.fields(path)?["n"]
    }

    private func records() throws -> Int {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try snapshot.count(.meta, KeyRange(prefix: OnceAnswers.prefix), limit: .max)
    }

    private func problems() throws -> [String] { try IntegrityCheck.run(store).problems }

    private func sweep(_ database: Database) throws {
        while true {
            let promise = Promise<Result<Bool, Status>>()
            database.deleteOldOnceAnswers(limit: 3) { promise.give($0) }
            if try !promise.wait().get() { return }
        }
    }

    @Test func aRepetitionGetsTheFirstAnswerAlsoAfterARestart() throws {
        let first = try commit(try open(), "e", [increment(), .delete("c/other")])
        let database = try open()
        let again = try commit(database, "e", [increment(by: 5), .delete("c/other")])
        #expect(again.commitTime == first.commitTime && again.results == first.results)
        #expect(first.results.count == 2 && first.results[0].transformResults == [.integer(1)])
        #expect(try number(database) == .integer(1) && database.newestVersion == first.commitTime.microseconds)
        try commit(database, "f", [increment()])
        try commit(database, "E", [increment()])
        // Ids that continue each other.
        try commit(database, "ee", [increment()])
        #expect(try number(database) == .integer(4))
        #expect(try problems().isEmpty)
    }

    @Test func concurrentRepetitionsApplyOnce() throws {
        let database = try open()
        // The others queue behind it, and make one group.
        let blocking = Promise<Void>()
        database.perform({ _ throws(Status) in blocking.wait() }, completion: { _ in })
        let pending = try (0..<60).map { try submit(database, "id\($0 % 6)", [increment()]) }
        let groups = database.statistics.groups
        blocking.give(())
        let outcomes = try pending.map { try $0.wait().get() }
        #expect(database.statistics.groups - groups < 60)
        for (index, outcome) in outcomes.enumerated() {
            #expect(outcome.commitTime == outcomes[index % 6].commitTime)
            #expect(outcome.results == outcomes[index % 6].results)
        }
        #expect(try number(database) == .integer(6))
    }

    @Test func anIdBelongsToItsDocuments() throws {
        let database = try open()
        try commit(database, "e", [increment("c/a"), increment("c/b")])
        for writes in [
            [increment("c/a")], [increment("c/b"), increment("c/a")], [], [increment("c/a"), increment("c/b/x/b")],
            [increment("c/a"), increment("c/b"), increment("c/b")],
        ] {
            #expect(code { try commit(database, "e", writes) } == .failedPrecondition)
        }
        #expect(try number(database, "c/a") == .integer(1))
    }

    @Test func aCommitThatFailsLeavesNoMark() throws {
        let database = try open()
        let missing = Write.set("c/d", map(("n", .integer(7))), .exists(true))
        #expect(code { try commit(database, "e", [missing]) } == .notFound)
        #expect(try records() == 0)
        try commit(database, "e", [increment()])
        // Its precondition no longer matters.
        try commit(database, "e", [missing])
        #expect(try number(database) == .integer(1))
    }

    @Test func aCommitWithoutWritesHasAMarkToo() throws {
        let database = try open()
        let first = try commit(database, "e", [])
        clock.advance(seconds: 1)
        #expect(try commit(database, "e", []).commitTime == first.commitTime)
    }

    @Test func aCommitThatIsAnsweredEndsItsTransaction() throws {
        let database = try open()
        let path = ResourcePath(["c", "d"])
        func begin() throws -> [UInt8] {
            try database.beginRead(.newTransaction(.readWrite(retry: nil)), [.document(path)]).waitForTransaction()
        }
        let first = try begin()
        let outcome = try commit(database, "e", [increment()], in: first)
        let second = try begin()
        #expect(try commit(database, "e", [increment()], in: second).commitTime == outcome.commitTime)
        #expect(database.openTransactions == 0)
        // Its lock is gone.
        try database.commit([increment("c/d", by: 10)])
        // The answer was lost, and the request is sent again.
        for ended in [first, second] {
            #expect(try commit(database, "e", [increment()], in: ended).commitTime == outcome.commitTime)
            #expect(code { try commit(database, "f", [increment()], in: ended) } != nil)
        }
        #expect(try number(database) == .integer(11))
        #expect(try records() == 2)
    }

    /// Commits that take the preparer's path.
    @Test func largeCommitsAreAnsweredToo() throws {
        let database = try open()
        let writes = (0..<600).map { increment("c/d\($0)") }
        let pending = try (0..<4).map { _ in try submit(database, "e", writes) }
        let outcomes = try pending.map { try $0.wait().get() }
        for outcome in outcomes { #expect(outcome.results == outcomes[0].results && outcome.results.count == 600) }
        #expect(try number(database, "c/d599") == .integer(1))
        let refused = try submit(database, "f", writes, in: Array("no transaction".utf8)).wait()
        #expect(code { _ = try refused.get() } == .invalidArgument)
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: OnceAnswers.prefix), reverse: false, values: true)
        while try cursor.next() { #expect(cursor.key.count + cursor.value.count < 1000) }
    }

    @Test func idsAreVisibleCharactersOfASCII() throws {
        for id in ["", "a b", "ä", "a\n", String(repeating: "x", count: 129)] {
            #expect(code { _ = try OnceID(id, called: "x-hearth-once") } == .invalidArgument)
        }
        #expect(try OnceID(String(repeating: "~", count: 128), called: "").bytes.count == 128)
    }

    @Test func answersExpireAfterEightDays() throws {
        let database = try open()
        for number in 0..<7 { try commit(database, "old\(number)", [increment()]) }
        clock.advance(seconds: Double(Limits.onceSeconds - 60))
        try commit(database, "new", [increment()])
        try sweep(database)
        #expect(try records() == 16)
        clock.advance(seconds: 120)
        try sweep(database)
        #expect(try records() == 2)
        try commit(database, "old3", [increment()])
        try commit(database, "new", [increment()])
        #expect(try number(database) == .integer(9))
        #expect(try problems().isEmpty)
    }

    /// The id of a commit of a minute ago must be known, though its time says 1970.
    @Test func answersOfAnUnsetClockAreKept() throws {
        clock.set(microseconds: 5_000_000)
        try commit(try open(), "e", [increment()])
        clock.set(microseconds: 1_700_000_000_000_000)
        try commit(try open(), "f", [increment()])
        let database = try open()
        clock.advance(seconds: 2 * 3600)
        try sweep(database)
        try commit(database, "e", [increment()])
        try commit(database, "f", [increment()])
        #expect(try number(database) == .integer(2) && records() == 4)
    }

    /// Neither a clock that is ahead at the start nor one that steps deletes anything.
    @Test func aWrongClockDeletesNothing() throws {
        let day: Int64 = 86_400_000_000
        try commit(try open(), "e", [increment()])
        clock.jump(microseconds: 90 * day)
        let ahead = try open()
        try commit(ahead, "f", [increment()])
        clock.advance(seconds: 60)
        try sweep(ahead)
        #expect(try records() == 4)
        // Corrected within the hour.
        clock.jump(microseconds: -90 * day)
        clock.advance(seconds: 3 * 3600)
        try sweep(ahead)
        #expect(try records() == 4)
        let other = try open()
        clock.advance(seconds: 3 * 3600)
        clock.jump(microseconds: 20 * day)
        try sweep(other)
        #expect(try records() == 4)
    }

    /// A database that was not open for long.
    @Test func answersExpireWhileTheDatabaseIsClosed() throws {
        try commit(try open(), "e", [increment()])
        clock.jump(microseconds: 10 * 86_400_000_000)
        let database = try open()
        clock.advance(seconds: 3000)
        try sweep(database)
        #expect(try records() == 2)
        clock.advance(seconds: 700)
        try sweep(database)
        #expect(try records() == 0)
    }

    @Test func aClearedDatabaseKnowsNoIds() throws {
        let database = try open()
        try commit(database, "e", [increment()])
        try database.clear()
        #expect(try records() == 0)
        try commit(database, "e", [increment("other/d")])
        #expect(try problems().isEmpty)
    }

    @Test func damageIsFoundAndAppliesNothing() throws {
        let database = try open()
        try commit(database, "e", [increment()])
        try commit(database, "f", [increment()])
        let piece = OnceAnswers.prefix + [1] + Array("e".utf8) + [0, 0, 0, 0]
        try store.write { transaction throws(Status) in
            #expect(try transaction.get(.meta, piece) != nil)
            try transaction.put(.meta, piece, [1, 2])
            try transaction.put(.meta, OnceAnswers.prefix + [1, 2], [])
        }
        #expect(code { try commit(database, "e", [increment()]) } == .dataLoss)
        #expect(try number(database) == .integer(2))
        #expect(try problems().count == 3)
    }

    /// Databases without answers cost no write.
    @Test func nothingIsWrittenWithoutAnswers() throws {
        let deferred = DeferredStore(make: { MemoryStore() })
        let database = try Database(name: testDatabaseName, store: deferred, clock: clock)
        clock.advance(seconds: 30 * 86_400)
        try sweep(database)
        #expect(!database.exists)
    }
}
