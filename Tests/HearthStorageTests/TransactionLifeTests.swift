import Glibc
import HearthModel
import HearthTestDoubles
import HearthWire
import Testing

@testable import HearthStorage

/// How transactions begin and end, and what bounds them.
@Suite struct TransactionLifeTests: TransactionBench {
    let clock = ManualClock()
    let database: Database

    init() throws {
        database = try Self.open(clock)
    }

    // MARK: Ends

    @Test func idleTransactionsExpire() throws {
        let transaction = try database.beginTransaction()
        _ = try number("c/a", in: transaction)
        pass(seconds: 59)
        #expect(database.openTransactions == 1)
        pass(seconds: 2)
        #expect(database.openTransactions == 0)
        #expect(database.locks.isIdle)
        #expect(statusOf { () throws(Status) in _ = try read("c/a", in: transaction).wait() } == Self.expired)
        #expect(commitStatus([set("c/a", 1)], in: transaction) == Self.expired)
        try database.rollback(transaction)
    }

    @Test func noTransactionLivesLongerThanItMay() throws {
        let transaction = try database.beginTransaction()
        for _ in 0..<13 {
            pass(seconds: 20)
            _ = try number("c/a", in: transaction)
        }
        pass(seconds: 11)
        #expect(commitStatus([set("c/a", 1)], in: transaction) == Self.expired)
        // Forgotten long after, it is still no garbage.
        pass(seconds: 1000)
        #expect(commitStatus([set("c/a", 1)], in: transaction) == Self.expired)
        #expect(statusOf { () throws(Status) in _ = try database.beginTransaction(retry: transaction) } == nil)
    }

    @Test func aCommitEndsItsTransactionWhateverItsOutcome() throws {
        let good = try database.beginTransaction()
        try database.commit([set("c/a", 1)], in: good)
        let bad = try database.beginTransaction()
        #expect(commitStatus([.set("c/none", map(), .exists(true))], in: bad)?.code == .notFound)
        for id in [good, bad] {
            #expect(commitStatus([], in: id) == Self.expired)
            #expect(statusOf { () throws(Status) in _ = try read("c/a", in: id).wait() } == Self.expired)
            try database.rollback(id)
            try database.rollback(id)
            #expect(statusOf { () throws(Status) in _ = try database.beginTransaction(retry: id) } == nil)
        }
    }

    @Test func garbageIsNoTransaction() throws {
        var forged = try database.beginTransaction()
        forged[3] ^= 1
        for id in [forged, [1, 2, 3], Array(repeating: 0, count: 24)] {
            #expect(commitStatus([set("c/a", 1)], in: id) == Self.invalid)
            #expect(statusOf { () throws(Status) in try database.rollback(id) } == Self.invalid)
            #expect(statusOf { () throws(Status) in _ = try read("c/a", in: id).wait() } == Self.invalid)
            #expect(statusOf { () throws(Status) in _ = try database.beginTransaction(retry: id) } == Self.invalid)
        }
        #expect(statusOf { () throws(Status) in try database.rollback([]) } == Self.invalid)
    }

    @Test func oneOfTwoCommitsWithOneIDIsApplied() throws {
        let increment = try Write.merge(
            "c/a", map(), [], transforms: [FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1)))])
        for _ in 0..<200 {
            let before = try number("c/a")
            let transaction = try database.beginTransaction()
            _ = try number("c/a", in: transaction)
            let statuses = Gathered<Status?>()
            inThreads(2) { [database] _ in
                statuses.append(statusOf { () throws(Status) in try database.commit([increment], in: transaction) })
            }
            #expect(statuses.values.count { $0 == nil } == 1)
            #expect(try number("c/a") == before.map { $0 + 1 })
        }
    }

    // MARK: Read-only

    @Test func readOnlyTransactionsKeepTheirSnapshotAndLockNothing() throws {
        let transaction = try database.begin(.readOnly(readTime: nil))
        try database.commit([set("c/a", 10)])
        #expect(try number("c/a", in: transaction) == 1)
        #expect(
            commitStatus([set("c/a", 5)], in: transaction)
                == .invalidArgument("Cannot modify entities in a read-only transaction."))
        let second = try database.begin(.readOnly(readTime: nil))
        #expect(commitStatus([], in: second) == nil)
        #expect(database.locks.isIdle)
        #expect(
            statusOf { () throws(Status) in _ = try database.beginTransaction(retry: second) }
                == .invalidArgument("Cannot retry a read-only transaction."))
    }

    @Test func readOnlyTransactionsMayLookBack() throws {
        let then = try database.view().readTime
        clock.advance(seconds: 10)
        try database.commit([set("c/a", 10)])
        let transaction = try database.begin(.readOnly(readTime: then))
        #expect(try number("c/a", in: transaction) == 1)
        let future = Timestamp(microseconds: clock.now().microseconds + 1_000_000)
        #expect(
            statusOf { () throws(Status) in _ = try database.begin(.readOnly(readTime: future)) }
                == .invalidArgument("The requested 'read_time' cannot be in the future."))
        let past = Timestamp(microseconds: clock.now().microseconds - 3_601_000_000)
        #expect(
            statusOf { () throws(Status) in _ = try database.begin(.readOnly(readTime: past)) }
                == .failedPrecondition("The requested 'read_time' is too old."))
    }

    /// The store may have been idle for longer than its history reaches, or be new, when the first commit is on its way.
    @Test(arguments: [false, true]) func readTimesAreOfNowWhileCommitsAreOnTheirWay(_ hadCommits: Bool) throws {
        let store = FaultyStore()
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        if hadCommits { try database.commit([set("c/a", 1)]) }
        clock.advance(seconds: 2 * Double(Limits.retentionSeconds))
        store.hold()
        let pending = database.submit([set("c/a", 2)])
        for _ in 0..<20 {
            let transaction = try database.begin(.readOnly(readTime: nil))
            let view = try database.beginRead(.strong).wait()
            #expect(abs(view.readTime.microseconds - clock.now().microseconds) < 1_000_000)
            #expect((try view.document(resource("c/a").path) != nil) == hadCommits)
            // As the commit is taken up by another thread, some reads come before and some after it.
            usleep(1000)
            try database.rollback(transaction)
        }
        let before = try database.begin(.readOnly(readTime: nil))
        let waiting = database.beginRead(.transaction(before))
        store.release()
        let version = try pending.wait().get().commitTime
        let view = try waiting.wait()
        #expect((try view.document(resource("c/a").path) != nil) == hadCommits)
        #expect(view.readTime < version)
        #expect(try database.view().readTime >= version)
    }

    // MARK: Reads that begin a transaction

    @Test func aReadMayBeginATransaction() throws {
        let pending = database.beginRead(.newTransaction(.readWrite(retry: nil)), [.document(resource("c/a").path)])
        let transaction = try pending.waitForTransaction()
        try database.commit([set("c/a", 2)], in: transaction)
        let readOnly = try database.beginRead(.newTransaction(.readOnly(readTime: nil))).waitForTransaction()
        try database.rollback(readOnly)
        #expect(database.locks.isIdle)
        #expect(database.openTransactions == 0)
    }

    @Test func aTransactionWhoseFirstReadFailsIsNotLeftBehind() throws {
        let many = (0..<(Limits.transactionReadSetMax + 1)).map {
            Database.ReadTarget.document(resource("c/\($0)").path)
        }
        #expect(
            statusOf { () throws(Status) in _ = try database.view(.newTransaction(.readWrite(retry: nil)), many) }?.code
                == .resourceExhausted)
        #expect(database.openTransactions == 0)
        #expect(database.locks.isIdle)
    }

    // MARK: Limits

    @Test func readSetsAreBounded() throws {
        let transaction = try database.beginTransaction()
        let most = (0..<Limits.transactionReadSetMax).map { Database.ReadTarget.document(resource("c/\($0)").path) }
        _ = try database.view(.transaction(transaction), most)
        #expect(
            statusOf { () throws(Status) in _ = try read("c/a", in: transaction).wait() }?.code == .resourceExhausted)
        try database.rollback(transaction)
        let other = try database.beginTransaction()
        let queries = Array(repeating: try query(0, 10), count: Limits.transactionQueriesMax)
        _ = try database.view(.transaction(other), queries)
        #expect(
            statusOf { () throws(Status) in _ = try database.view(.transaction(other), [query(0, 1)]) }?.code
                == .resourceExhausted)
        try database.rollback(other)
        #expect(database.locks.isIdle)
    }

    @Test func openTransactionsAreBounded() throws {
        var ids: [[UInt8]] = []
        for _ in 0..<Limits.transactionsOpenMax { ids.append(try database.beginTransaction()) }
        #expect(statusOf { () throws(Status) in _ = try database.beginTransaction() }?.code == .resourceExhausted)
        for id in ids { try database.rollback(id) }
        #expect(statusOf { () throws(Status) in _ = try database.beginTransaction() } == nil)
    }

    @Test func queuesAreBounded() throws {
        let ids = try (0...Limits.lockQueueLengthMax).map { _ in try database.beginTransaction() }
        let reads = ids.map { read("c/a", in: $0) }
        #expect(reads[0].isOver)
        #expect(
            statusOf { () throws(Status) in _ = try reads[Limits.lockQueueLengthMax].wait() }?.code
                == .resourceExhausted)
        for id in ids { try database.rollback(id) }
        #expect(reads.allSatisfy { $0.isOver })
        #expect(database.locks.isIdle)
    }
}
