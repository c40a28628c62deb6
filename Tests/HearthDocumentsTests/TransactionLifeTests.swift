import Glibc
import HearthConcurrency
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments

/// The beginning, the end and the bounds of transactions.
@Suite struct TransactionLifeTests: TransactionBench {
    let clock = StoppedClock()
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

    @Test func noTransactionOutlivesItsLimit() throws {
        let transaction = try database.beginTransaction()
        for _ in 0..<13 {
            pass(seconds: 20)
            _ = try number("c/a", in: transaction)
        }
        pass(seconds: 11)
        #expect(commitStatus([set("c/a", 1)], in: transaction) == Self.expired)
        // Long after it was forgotten, it is still not garbage.
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

    @Test func readOnlyTransactionsMayReadThePast() throws {
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

    /// A client that continues with an earlier snapshot has named no time.
    @Test func aVersionThatWasClearedIsUnavailable() throws {
        let then = try database.view().version
        try database.commit([set("c/a", 10)])
        #expect(try number("c/a", database.view(atVersion: then)) == 1)
        try database.clear()
        #expect(statusOf { () throws(Status) in _ = try database.view(atVersion: then) } == Database.cleared)
    }

    /// A client that reconnects is shown a version that it knows, while a later commit is already visible.
    @Test func aPastVersionHasNoEarlierReadTimeThanTheOneThatWasGivenOut() throws {
        clock.advance(seconds: 10)
        let version = try database.view().version
        let given = try database.view().readTime
        #expect(given.microseconds > version)
        clock.advance(seconds: 10)
        let next = try database.commit([set("c/a", 10)]).commitTime
        let latest = try database.view(atVersion: version).latestReadTime()
        #expect(latest >= given && latest < next)
        #expect(try number("c/a", database.pastView(at: latest)) == 1)
        #expect(try database.view().latestReadTime() >= next)
    }

    /// The store may have been idle for longer than its history reaches, or be new, when the first commit is under way.
    @Test(arguments: [false, true]) func readTimesAreCurrentWhileCommitsAreUnderWay(_ hadCommits: Bool) throws {
        let store = FaultyStore()
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        if hadCommits { try database.commit([set("c/a", 1)]) }
        clock.advance(seconds: 2 * Double(Limits.retentionSeconds))
        store.hold()
        let pending = database.submit([set("c/a", 2)])
        for round in 0..<20 {
            let transaction = try database.begin(.readOnly(readTime: nil))
            let view = try database.beginRead(.strong).wait()
            #expect(abs(view.readTime.microseconds - clock.now().microseconds) < 1_000_000)
            #expect((try view.document(resource("c/a").path) != nil) == hadCommits)
            // Some reads come before the writer's thread takes the commit, and some after it.
            if round == 10 { store.waitForWriter() }
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

    @Test func ofTooManyTransactionsTheOldestUnusedOneEnds() throws {
        let used = try database.beginTransaction()
        _ = try number("c/a", in: used)
        var ids: [[UInt8]] = []
        for _ in 1..<Limits.transactionsOpenMax { ids.append(try database.beginTransaction()) }
        for _ in 0..<3 { ids.append(try database.beginTransaction()) }
        #expect(database.openTransactions == Limits.transactionsOpenMax)
        for id in ids.prefix(3) { #expect(commitStatus([], in: id) == Self.expired) }
        #expect(try number("c/a", in: used) == 1)
        for id in ids { try database.rollback(id) }
        try database.rollback(used)
        #expect(database.openTransactions == 0)
        #expect(database.locks.isIdle)
    }

    private func begin(_ account: UInt64, connection: UInt64, isUsed: Bool) throws(Status) -> [UInt8] {
        let requester = Requester(account: account, connection: connection, isAdministrator: false)
        let id = try database.begin(.readWrite(retry: nil), requester: requester)
        // A document of its own, because one transaction holds its lock.
        if isUsed { _ = try database.fields("c/\(account)-\(connection)", in: id) }
        return id
    }

    /// Reading doesn't wait here: read-only transactions take no locks.
    private func fill(_ account: UInt64, connections: UInt64) throws(Status) {
        for number in 0..<UInt64(Limits.transactionsOpenMax) {
            let requester = Requester(account: account, connection: number % connections, isAdministrator: false)
            let id = try database.begin(.readOnly(readTime: nil), requester: requester)
            _ = try database.view(.transaction(id))
        }
    }

    @Test func theLargestHolderLosesTransactionsToOthers() throws {
        try fill(1, connections: 1)
        // A client doesn't end its own transactions.
        #expect(
            statusOf { () throws(Status) in _ = try begin(1, connection: 0, isUsed: false) }?.code == .resourceExhausted
        )
        for connection in 1...20 {
            _ = try begin(1, connection: UInt64(connection), isUsed: true)
            _ = try begin(2, connection: UInt64(connection), isUsed: true)
        }
        _ = try database.begin(.readWrite(retry: nil), requester: .administrator(connection: 77))
        #expect(database.openTransactions == Limits.transactionsOpenMax)
    }

    @Test func clientsDoNotEndWhatAdministratorsHold() throws {
        let administrator = try database.begin(.readWrite(retry: nil), requester: .administrator(connection: 77))
        for number in 0..<(2 * Limits.transactionsOpenMax) {
            _ = try begin(UInt64(number % 100), connection: UInt64(number % 1000), isUsed: false)
        }
        #expect(try number("c/a", in: administrator) == 1)
    }

    // MARK: Optimistic transactions

    @Test func anOptimisticTransactionMakesNoClientWait() throws {
        let transaction = try database.begin(.readWrite(retry: nil, concurrency: .optimistic))
        #expect(try number("c/a", in: transaction) == 1)
        let query = try NormalizedQuery(
            Query(parent: ResourceName(database: testDatabaseName, path: ResourcePath()), scope: .collection("c")))
        _ = try database.view(.transaction(transaction), [.query(query)])
        #expect(database.locks.isIdle)
        try database.commit([set("c/a", 7)])
        #expect(commitStatus([set("c/b", 1)], in: transaction) == CommitPipeline.contention)
        // A phantom.
        let other = try database.begin(.readWrite(retry: transaction, concurrency: .optimistic))
        _ = try database.view(.transaction(other), [.query(query)])
        try database.commit([set("c/new", 1)])
        #expect(commitStatus([set("c/b", 1)], in: other) == CommitPipeline.contention)
        // The data that it has read is unchanged.
        let last = try database.begin(.readWrite(retry: other, concurrency: .optimistic))
        #expect(try number("c/a", in: last) == 7)
        try database.commit([set("d/a", 1)])
        try database.commit([set("c/a", 8)], in: last)
        #expect(try number("c/a") == 8)
        #expect(database.locks.isIdle && database.openTransactions == 0)
    }

    /// Its commit waits for the locks of others, like one outside of transactions.
    @Test func anOptimisticTransactionWaitsForThoseThatLock() throws {
        let locking = try database.beginTransaction()
        _ = try number("c/a", in: locking)
        let transaction = try database.begin(.readWrite(retry: nil, concurrency: .optimistic))
        _ = try number("c/b", in: transaction)
        let pending = database.submit([set("c/a", 8)], in: transaction)
        try database.rollback(locking)
        _ = try pending.wait().get()
        #expect(try number("c/a") == 8)
        #expect(database.locks.isIdle)
    }

    // MARK: Reads that aren't allowed

    private static let no = Status(.permissionDenied, "No.")

    private func denied(_ consistency: Database.Consistency) -> Status? {
        let promise = Promise<Status?>()
        database.read(
            consistency, [.document(resource("c/a").path)], judge: { _ throws(Status) in throw Self.no }
        ) { promise.give($0.failure) }
        return promise.wait()
    }

    @Test func aReadThatIsNotAllowedTakesNoLock() throws {
        #expect(denied(.newTransaction(.readWrite(retry: nil))) == Self.no)
        #expect(database.openTransactions == 0)
        #expect(database.locks.isIdle)
        let transaction = try database.beginTransaction()
        #expect(denied(.transaction(transaction)) == Self.no)
        // Another client's commit doesn't wait.
        try database.commit([set("c/a", 7)])
        // A read that waits for no lock isn't delayed by one that failed behind a lock, either.
        _ = try number("c/a", in: transaction)
        #expect(denied(.newTransaction(.readWrite(retry: nil))) == Self.no)
        try database.rollback(transaction)
        #expect(database.locks.isIdle)
    }

    /// The view that a read gets may show another state than the one that was judged first.
    @Test func aWithdrawnReadReleasesItsLocks() throws {
        let transaction = try database.beginTransaction()
        _ = try number("c/a", in: transaction)
        let promise = Promise<Status?>()
        let targets = [Database.ReadTarget.document(resource("c/a").path), .document(resource("c/b").path)]
        database.read(.transaction(transaction), targets) { result in
            if case .success(let grant) = result { grant.withdraw() }
            promise.give(result.failure)
        }
        #expect(promise.wait() == nil)
        try database.commit([set("c/b", 7)])
        // It keeps the locks that it had before.
        let pending = database.submit([set("c/a", 8)])
        try database.rollback(transaction)
        _ = try pending.wait().get()
        let begun = Promise<[UInt8]?>()
        database.read(.newTransaction(.readWrite(retry: nil)), targets) { result in
            if case .success(let grant) = result { grant.withdraw() }
            begun.give((try? result.get())?.newTransaction)
        }
        #expect(begun.wait() != nil)
        #expect(database.openTransactions == 0)
        #expect(database.locks.isIdle)
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
