import Glibc
import HearthConcurrency
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The memory of transactions' read sets is counted, for all of them together.
@Suite struct ReadSetMemoryTests: TransactionBench {
    let clock = StoppedClock()
    let budget = MemoryBudget(bytesMax: 16 << 20, shareBytesMax: 8 << 20, smallBytesMax: 64 << 10)
    let database: Database

    init() throws {
        database = try Database(
            name: testDatabaseName, store: MemoryStore(), clock: clock, memory: DatabaseMemory(readSets: budget))
        try database.commit([set("c/a", 1)])
    }

    private func client(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    /// A query of 42 KB.
    private func large(_ number: Int) throws -> Database.ReadTarget {
        let values = (0..<30).map { Value.string("\(number)-\($0)-" + String(repeating: "x", count: 1400)) }
        return .query(
            try NormalizedQuery(
                Query(
                    parent: resource(""), scope: .collection("c"),
                    filter: .field(FieldPath("a"), .in, .array(values)))))
    }

    private func status(_ id: [UInt8], _ target: Database.ReadTarget) -> Status? {
        statusOf { () throws(Status) in _ = try database.view(.transaction(id), [target]) }
    }

    /// The writer releases a commit after it has answered.
    private func untilAllMemoryIsReleased() {
        while budget.usedBytes > 0 { sched_yield() }
    }

    /// Reads large queries until one fails.
    /// - Parameter first: the first query, different for each transaction, so that no two wait for each other.
    private func fill(_ id: [UInt8], from first: Int = 0) throws -> Int {
        for number in 0..<2000 {
            guard let status = status(id, try large(first + number)) else { continue }
            #expect(status.code == .resourceExhausted)
            return number
        }
        Issue.record("nothing is refused")
        return 0
    }

    @Test(arguments: [1, 4]) func largeQueriesOfAnAccountEndAtItsShare(_ transactions: Int) throws {
        var ids: [[UInt8]] = []
        var queries = 0
        for number in 0..<transactions {
            ids.append(try database.begin(.readWrite(retry: nil), requester: client(1, UInt64(number))))
            queries += try fill(ids[number], from: number * 10_000)
        }
        #expect(budget.usedBytes <= budget.shareBytesMax + transactions * budget.smallBytesMax)
        // Their estimate isn't below the size of the requests alone.
        #expect(budget.usedBytes >= queries * 42_000)
        #expect(queries >= 8)
        // Others continue to read, also with another connection of the account.
        for requester in [client(2, 99), client(1, 100)] {
            let other = try database.begin(.readWrite(retry: nil), requester: requester)
            for key in 0..<50 {
                let name = resource("c/\(requester.account)-\(key)")
                #expect(status(other, .document(name.path)) == nil)
            }
            ids.append(other)
        }
        // For any end of a transaction: by a commit, a rollback, or a timeout.
        try database.commit([set("c/b", 1)], in: ids[0])
        try database.rollback(ids[ids.count - 1])
        pass(seconds: 61)
        #expect(database.openTransactions == 0)
        untilAllMemoryIsReleased()
        #expect(database.locks.isIdle)
    }

    @Test func aFailedReadLeavesNothing() throws {
        let id = try database.begin(.readWrite(retry: nil), requester: client(1, 1))
        _ = try fill(id)
        let used = budget.usedBytes
        let refused = [Database.ReadTarget.document(resource("c/a").path), try large(5000)]
        let status = statusOf { () throws(Status) in _ = try database.view(.transaction(id), refused) }
        #expect(status?.code == .resourceExhausted)
        #expect(budget.usedBytes == used)
        // No owner waits for the lock that it would have taken.
        try database.commit([set("c/a", 2)])
        // The transaction continues with what it has.
        #expect(commitStatus([set("c/z", 2)], in: id) == nil)
        untilAllMemoryIsReleased()
    }

    /// A waiting call holds memory as well.
    @Test func readsThatWaitForALockAreCounted() throws {
        let holder = try database.beginTransaction()
        _ = try number("c/a", in: holder)
        let waiting = try database.begin(.readWrite(retry: nil), requester: client(1, 1))
        let promise = Promise<Bool>()
        let targets = [Database.ReadTarget.document(resource("c/a").path), try large(1)]
        database.read(.transaction(waiting), targets) { promise.give($0.failure == nil) }
        #expect(!promise.isGiven)
        #expect(budget.usedBytes > 42_000)
        try database.rollback(holder)
        #expect(promise.wait())
        try database.rollback(waiting)
        #expect(budget.usedBytes == 0)
    }

    @Test func readingOneDocumentAgainTakesNoMore() throws {
        let id = try database.begin(.readWrite(retry: nil), requester: client(1, 1))
        let targets = (0..<100).map { Database.ReadTarget.document(resource("c/\($0)").path) }
        _ = try database.view(.transaction(id), targets)
        let used = budget.usedBytes
        #expect(used > 0)
        for _ in 0..<50 { _ = try database.view(.transaction(id), targets) }
        #expect(budget.usedBytes == used)
        try database.rollback(id)
    }

    @Test func aTransactionMayReadAsManyDocumentsAsItsLimitSays() throws {
        let database = try Database(
            name: testDatabaseName, store: MemoryStore(), clock: clock,
            memory: DatabaseMemory(
                readSets: MemoryBudget(bytesMax: Limits.readSetBytesMax, shareBytesMax: Limits.readSetShareBytesMax)))
        let id = try database.begin(.readWrite(retry: nil), requester: client(1, 1))
        let most = (0..<Limits.transactionReadSetMax).map {
            Database.ReadTarget.document(resource("collection/a-document-\($0)").path)
        }
        _ = try database.view(.transaction(id), most)
        try database.rollback(id)
    }

    /// The queue for the writer counts the memory that it holds, not the bytes on the wire.
    @Test func commitsCountTheMemoryThatTheyHold() throws {
        let nulls = Write.set("c/nulls", map(("a", .array(Array(repeating: .null, count: 100_000)))))
        #expect(CommitCost.measure([nulls]).bytes >= 100_000 * MemoryLayout<Value>.stride)
        let string = Write.set("c/long", map(("a", .string(String(repeating: "x", count: 100_000)))))
        #expect(CommitCost.measure([string]).bytes < 110_000)
        let admission = CommitAdmission()
        var entered = 0
        while entered < 100 {
            let request = CommitPipeline.Request(
                writes: [], owner: 0, requestTime: clock.now(), guard: nil, sizeBytes: 1 << 10,
                requester: client(1, 1), waitUntil: 0, completion: { _ in })
            request.decodedBytes = 32 << 20
            if statusOf({ () throws(Status) in _ = try admission.enter(request) }) != nil { break }
            entered += 1
        }
        #expect(entered == Limits.commitQueueBytesMax / 2 / (32 << 20))
    }
}
