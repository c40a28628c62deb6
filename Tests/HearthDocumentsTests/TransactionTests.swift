import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments

/// Transactions with a clock that the tests move.
@Suite struct TransactionTests: TransactionBench {
    let clock = StoppedClock()
    let database: Database

    init() throws {
        database = try Self.open(clock)
    }

    // MARK: Locks

    @Test func aReadWaitsBehindTheTransactionThatReadBefore() throws {
        let first = try database.beginTransaction()
        let second = try database.beginTransaction()
        #expect(try number("c/a", in: first) == 1)
        let waiting = read("c/a", in: second)
        #expect(!waiting.isOver)
        try database.commit([set("c/a", 10)], in: first)
        #expect(try number("c/a", waiting.wait()) == 10)
        try database.commit([set("c/a", 11)], in: second)
        #expect(try number("c/a") == 11)
        #expect(database.locks.isIdle)
    }

    @Test func readsOfOtherDocumentsDoNotWait() throws {
        let first = try database.beginTransaction()
        let second = try database.beginTransaction()
        _ = try number("c/a", in: first)
        #expect(try number("c/b", in: second) == 2)
        #expect(try database.view(.strong, [.document(resource("c/a").path)]).document(resource("c/a").path) != nil)
        try database.commit([set("c/b", 20)], in: second)
        try database.commit([set("c/a", 10)], in: first)
        #expect(database.locks.isIdle)
    }

    @Test func aPlainWriteWaitsForTheLock() throws {
        let transaction = try database.beginTransaction()
        _ = try number("c/a", in: transaction)
        let plain = database.submit([set("c/a", 5)])
        database.drain()
        #expect(!plain.isGiven)
        try database.commit([set("c/a", 10)], in: transaction)
        _ = try plain.wait().get()
        #expect(try number("c/a") == 5)
        #expect(database.locks.isIdle)
    }

    @Test func aPlainWriteTimesOut() throws {
        let transaction = try database.beginTransaction()
        _ = try number("c/a", in: transaction)
        let plain = database.submit([set("c/a", 5)])
        database.drain()
        pass(seconds: 1.9)
        #expect(!plain.isGiven)
        pass(seconds: 0.2)
        #expect(statusOf { () throws(Status) in _ = try plain.wait().get() } == Self.timeout)
        try database.commit([set("c/a", 10)], in: transaction)
        #expect(try number("c/a") == 10)
        #expect(database.locks.isIdle)
    }

    // MARK: Leases

    /// Tries to write until it succeeds, like a client; each try fails after two seconds.
    private func secondsUntilWritten(_ number: Int64, _ meanwhile: (Double) throws -> Void) throws -> Double {
        var seconds = 0.0
        var plain = database.submit([set("c/a", number)])
        while seconds < 60 {
            // No time passes while the writer overtakes one reader after the other.
            for _ in 0..<30 { database.drain() }
            if plain.isGiven {
                if plain.wait().failure == nil { return seconds }
                plain = database.submit([set("c/a", number)])
                database.drain()
            }
            try meanwhile(seconds)
            pass(seconds: 0.25)
            seconds += 0.25
        }
        return seconds
    }

    /// Transactions that only read can't keep a writer out.
    @Test(arguments: [false, true]) func readingAgainDoesNotExtendTheLease(isQuery: Bool) throws {
        let target: Database.ReadTarget = isQuery ? try query(0, 100) : .document(resource("c/a").path)
        let reader = try database.beginTransaction()
        func readAgain() throws {
            _ = try database.beginRead(.transaction(reader), [target]).wait()
            _ = try database.beginRead(.transaction(reader), [.document(resource("c/b").path)]).wait()
        }
        try readAgain()
        let first = try secondsUntilWritten(5) { _ in try readAgain() }
        #expect(first <= 5.5)
        // Afterwards the transaction blocks no one.
        let second = try secondsUntilWritten(6) { _ in try readAgain() }
        #expect(second <= 0.25)
        #expect(commitStatus([set("c/b", 1)], in: reader) == Self.contention)
        #expect(try number("c/a") == 6)
        #expect(database.locks.isIdle)
    }

    /// Nor can several that alternate.
    @Test(arguments: [false, true]) func alternatingReadersDoNotStarveAWriter(isQuery: Bool) throws {
        let target: Database.ReadTarget = isQuery ? try query(0, 100) : .document(resource("c/a").path)
        var readers: [[UInt8]] = []
        var pending: [PendingRead] = []
        for _ in 0..<20 {
            let reader = try database.beginTransaction()
            readers.append(reader)
            pending.append(database.beginRead(.transaction(reader), [target]))
        }
        for round in 0..<5 {
            let seconds = try secondsUntilWritten(Int64(round)) { _ in }
            #expect(seconds <= 5.5, "round \(round)")
            #expect(try number("c/a") == Int64(round))
        }
        for reader in readers { try database.rollback(reader) }
        for read in pending { _ = try? read.wait() }
        #expect(database.locks.isIdle)
    }

    @Test func aPlainWriteContinuesWhenTheTransactionIsRolledBack() throws {
        let transaction = try database.beginTransaction()
        _ = try number("c/a", in: transaction)
        let plain = database.submit([set("c/a", 5)])
        database.drain()
        try database.rollback(transaction)
        _ = try plain.wait().get()
        #expect(database.locks.isIdle)
    }

    /// Waiting for a second document must not forget the first.
    @Test func aPlainWriteMayWaitForSeveralTransactions() throws {
        let transactions = try ["c/a", "c/b", "c/none"].map { path in
            let id = try database.beginTransaction()
            _ = try number(path, in: id)
            return id
        }
        let plain = database.submit([set("c/none", 1), set("c/b", 2), set("c/a", 3)])
        for id in transactions {
            database.drain()
            #expect(!plain.isGiven)
            try database.rollback(id)
        }
        _ = try plain.wait().get()
        #expect(database.locks.isIdle)
        #expect(commitStatus([set("c/a", 4), set("c/b", 4)]) == nil)
    }

    @Test func plainWritesDoNotDeadlockAmongThemselves() throws {
        let first = try database.beginTransaction()
        let second = try database.beginTransaction()
        _ = try number("c/a", in: first)
        _ = try number("c/b", in: second)
        let writes = [
            database.submit([set("c/a", 5), set("c/b", 5)]), database.submit([set("c/b", 6), set("c/a", 6)]),
            database.submit([set("c/b", 7)]),
        ]
        database.drain()
        try database.rollback(second)
        database.drain()
        try database.rollback(first)
        for write in writes { _ = try write.wait().get() }
        #expect(try number("c/a") == number("c/b") || number("c/b") == 7)
        #expect(database.locks.isIdle)
    }

    @Test func closingAnswersWaitingCallers() throws {
        let transaction = try database.beginTransaction()
        _ = try number("c/a", in: transaction)
        let plain = database.submit([set("c/a", 5)])
        database.drain()
        database.close()
        #expect(statusOf { () throws(Status) in _ = try plain.wait().get() }?.code == .unavailable)
        #expect(commitStatus([set("c/a", 6)])?.code == .unavailable)
        #expect(commitStatus([set("c/a", 6)], in: transaction)?.code == .unavailable)
    }

    // MARK: Queries

    @Test func onlyWritesThatTouchAQuerysResultsWait() throws {
        let transaction = try database.beginTransaction()
        _ = try database.view(.transaction(transaction), [query(0, 10)])
        // Outside before and after, another collection, no change at all.
        #expect(commitStatus([set("c/x", 10), set("d/a", 5), .delete("c/none"), set("c/a", 1)]) == nil)
        // An added, a removed and a changed result.
        let writes = [
            database.submit([set("c/x", 9)]), database.submit([set("c/a", 11)]), database.submit([.delete("c/b")]),
            database.submit([.set("c/a", map(("n", .integer(1)), ("more", .null)))]),
        ]
        database.drain()
        #expect(writes.allSatisfy { !$0.isGiven })
        try database.commit([], in: transaction)
        for write in writes { _ = try write.wait().get() }
        #expect(database.locks.isIdle)
    }

    @Test func queriesWaitForQueriesThatMayOverlap() throws {
        let holder = try database.beginTransaction()
        _ = try database.view(.transaction(holder), [query(0, 10)])
        let ids = try (0..<4).map { _ in try database.beginTransaction() }
        let apart = database.beginRead(.transaction(ids[0]), [try query(10, 20)])
        let overlapping = database.beginRead(.transaction(ids[1]), [try query(9, 12)])
        let group = database.beginRead(.transaction(ids[2]), [try query(5, 6, group: true)])
        #expect(apart.isOver && !overlapping.isOver && !group.isOver)
        // Behind the one that waits already, though the holder doesn't conflict with it.
        let behind = database.beginRead(.transaction(ids[3]), [try query(11, 12)])
        #expect(!behind.isOver)
        try database.rollback(holder)
        #expect(group.isOver && !overlapping.isOver)
        try database.rollback(ids[0])
        #expect(overlapping.isOver && !behind.isOver)
        for id in ids { try database.rollback(id) }
        #expect(behind.isOver)
        #expect(database.locks.isIdle)
    }

    @Test func phantomsAreSeenAtTheCommit() throws {
        let transaction = try database.beginTransaction()
        let view = try database.view(.transaction(transaction), [query(0, 10)])
        #expect(try view.document(resource("c/a").path) != nil)
        pass(seconds: 5.1)
        let phantom = database.submit([set("c/x", 9)])
        _ = try phantom.wait().get()
        #expect(commitStatus([set("d/x", 1)], in: transaction) == Self.contention)
        #expect(database.locks.isIdle)
    }

    // MARK: Leases

    @Test func anOwnerWithAnExpiredLeaseIsOvertakenAndFails() throws {
        let slow = try database.beginTransaction()
        let quick = try database.beginTransaction()
        _ = try number("c/a", in: slow)
        let waiting = read("c/a", in: quick)
        pass(seconds: 4.9)
        #expect(!waiting.isOver)
        pass(seconds: 0.2)
        #expect(try number("c/a", waiting.wait()) == 1)
        try database.commit([set("c/a", 7)], in: quick)
        // Its reads are still of its own time; only its commit fails.
        #expect(try number("c/b", in: slow) == 2)
        #expect(try number("c/a", in: slow) == 1)
        #expect(commitStatus([set("c/a", 8)], in: slow) == Self.contention)
        #expect(try number("c/a") == 7)
        #expect(database.locks.isIdle)
    }

    @Test func anExpiredLeaseIsHarmlessWithoutOtherOwners() throws {
        let slow = try database.beginTransaction()
        _ = try number("c/a", in: slow)
        pass(seconds: 50)
        #expect(commitStatus([set("c/a", 8)], in: slow) == nil)
        let other = try database.beginTransaction()
        _ = try number("c/a", in: other)
        pass(seconds: 50)
        let plain = database.submit([set("c/b", 1)])
        _ = try plain.wait().get()
        #expect(commitStatus([set("c/a", 9)], in: other) == nil)
        #expect(database.locks.isIdle)
    }

    @Test func aLeaseCountsFromTheFirstRead() throws {
        let slow = try database.beginTransaction()
        let quick = try database.beginTransaction()
        _ = try number("c/a", in: slow)
        let waiting = read("c/a", in: quick)
        pass(seconds: 4)
        _ = try number("c/a", in: slow)
        _ = try number("c/b", in: slow)
        #expect(!waiting.isOver)
        pass(seconds: 1.5)
        #expect(try number("c/a", waiting.wait()) == 1)
        // It takes no more locks. While the data that it has read is unchanged, it can still succeed.
        _ = try number("c/a", in: slow)
        try database.rollback(quick)
        try database.commit([set("c/a", 3)], in: slow)
        #expect(try number("c/a") == 3)
        #expect(database.locks.isIdle)
    }

    @Test func aTransactionMovesWithThePresentUntilItsReadsChange() throws {
        let transaction = try database.beginTransaction()
        _ = try number("c/a", in: transaction)
        try database.commit([set("c/b", 20)])
        #expect(try number("c/b", in: transaction) == 20)
        pass(seconds: 6)
        // Overtaken by a write: from here on it keeps its version.
        let plain = database.submit([set("c/a", 5)])
        _ = try plain.wait().get()
        try database.commit([set("c/later", 1)])
        #expect(try number("c/later", in: transaction) == nil)
        #expect(try number("c/a", in: transaction) == 1)
        // Without writes no read must still be valid.
        try database.commit([], in: transaction)
        #expect(database.locks.isIdle)
    }

    // MARK: Deadlocks

    @Test func theYoungestOfACycleFailsAtItsCommitAndNotAtARead() throws {
        let old = try database.beginTransaction()
        let young = try database.beginTransaction()
        _ = try number("c/a", in: old)
        _ = try number("c/b", in: young)
        let oldRead = read("c/b", in: old)
        #expect(!oldRead.isOver)
        // Closes the cycle: both continue.
        #expect(try number("c/a", in: young) == 1)
        #expect(try number("c/b", oldRead.wait()) == 2)
        #expect(commitStatus([set("c/a", 5)], in: young) == Self.contention)
        #expect(commitStatus([set("c/a", 6), set("c/b", 6)], in: old) == nil)
        #expect(database.locks.isIdle)
    }

    @Test func aRetryKeepsItsAge() throws {
        let first = try database.beginTransaction()
        try database.rollback(first)
        let younger = try database.beginTransaction()
        let retry = try database.beginTransaction(retry: first)
        _ = try number("c/a", in: younger)
        _ = try number("c/b", in: retry)
        let waiting = read("c/b", in: younger)
        _ = try number("c/a", in: retry)
        _ = try waiting.wait()
        #expect(commitStatus([set("c/a", 5)], in: younger) == Self.contention)
        #expect(commitStatus([set("c/a", 6)], in: retry) == nil)
    }

    @Test func cyclesThroughQueriesAndWritesAreFound() throws {
        let first = try database.beginTransaction()
        let second = try database.beginTransaction()
        let third = try database.beginTransaction()
        _ = try database.view(.transaction(first), [query(0, 10)])
        _ = try number("c/b", in: second)
        _ = try database.view(.transaction(third), [query(50, 60)])
        // second waits for first's query by its commit, third for second, first for third.
        let commit = database.submit([set("c/a", 9)], in: second)
        database.drain()
        let thirdRead = read("c/b", in: third)
        #expect(!commit.isGiven && !thirdRead.isOver)
        let firstRead = database.beginRead(.transaction(first), [try query(55, 56)])
        _ = try firstRead.wait()
        // third, the youngest, was doomed, and continues to read.
        _ = try thirdRead.wait()
        #expect(commitStatus([set("c/x", 1)], in: third) == Self.contention)
        try database.rollback(first)
        #expect(statusOf { () throws(Status) in _ = try commit.wait().get() } == nil)
        #expect(database.locks.isIdle)
    }
}
