import Foundation
import HearthConcurrency
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The order of clients at the writer, and the admission of commits.
@Suite struct FairCommitTests {
    let clock = StoppedClock()
    let store = FaultyStore()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: clock)
    }

    private static func client(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    /// Notes the order in which commits are made, and moves the clock by the cost of each.
    private final class Order: CommitGuard {
        let name: String
        let log: Gathered<String>
        let clock: StoppedClock
        let seconds: Double

        init(_ name: String, _ log: Gathered<String>, _ clock: StoppedClock, seconds: Double) {
            self.name = name
            self.log = log
            self.clock = clock
            self.seconds = seconds
        }

        func check(_ commit: GuardedCommit) throws(Status) {
            log.append(name)
            clock.advance(seconds: seconds)
        }
    }

    private func submit(
        _ name: String, _ requester: Requester, _ log: Gathered<String>, elements: Int = 0, seconds: Double = 0,
        sizeBytes: Int = 0
    ) -> Promise<Result<CommitOutcome, Status>> {
        let promise = Promise<Result<CommitOutcome, Status>>()
        let fields = map(("a", .array((0..<elements).map { .integer(Int64($0)) })))
        database.commit(
            [.set("c/\(name)", fields)], sizeBytes: sizeBytes,
            guard: Order(name, log, clock, seconds: seconds), requester: requester
        ) { promise.give($0) }
        return promise
    }

    /// The first is taken alone and waits at the gate; the others gather behind it.
    private func holdWriter() -> Promise<Result<CommitOutcome, Status>> {
        store.hold()
        let first = database.submit([.set("c/first", map())])
        store.waitForWriter()
        return first
    }

    @Test(arguments: [(UInt64(1), UInt64(2)), (2, 1)]) func aSmallClientPrecedesTheQueueOfAnother(
        _ account: UInt64, _ connection: UInt64
    ) throws {
        let log = Gathered<String>()
        let first = holdWriter()
        var pending = (0..<100).map { submit("crowd\($0)", Self.client(1, 1), log) }
        pending.append(submit("bystander", Self.client(account, connection), log))
        store.release()
        _ = first.wait()
        for promise in pending { _ = try promise.wait().get() }
        let position = try #require(log.values.firstIndex(of: "bystander"))
        #expect(position <= 2)
        // Each connection keeps its own order.
        #expect(log.values.filter { $0 != "bystander" } == (0..<100).map { "crowd\($0)" })
    }

    @Test func aSmallCommitWaitsForOneLargeOneAtMost() throws {
        let log = Gathered<String>()
        let first = holdWriter()
        let large = (0..<20).map { submit("large\($0)", Self.client(1, UInt64($0)), log, elements: 5000) }
        let small = (0..<5).map { submit("small\($0)", Self.client(1, UInt64(100 + $0)), log) }
        store.release()
        _ = first.wait()
        let before = small.map { promise in
            _ = promise.wait()
            return large.count { $0.isGiven }
        }
        for promise in large { _ = try promise.wait().get() }
        // Those that were answered before are at most the few that were prepared while the writer was blocked.
        #expect(before.max()! <= Limits.commitsPreparedMax + 1)
    }

    /// Also when the next large one has been taken from the queue and found too large for the same group.
    @Test func aSmallCommitRunsBetweenTwoLargeOnes() throws {
        let log = Gathered<String>()
        let first = holdWriter()
        let large = (0..<Limits.commitsPreparedMax).map {
            submit("large\($0)", Self.client(1, UInt64($0)), log, elements: CommitCost.groupUnitsMax + 1)
        }
        while database.pipeline.preparedWaiting.load(ordering: .acquiring) < Limits.commitsPreparedMax { sched_yield() }
        let small = submit("small", Self.client(1, 100), log)
        store.release()
        _ = first.wait()
        let smallTime = try small.wait().get().commitTime
        let largeTimes = try large.map { try $0.wait().get().commitTime }.sorted()
        #expect(largeTimes[0] < smallTime && smallTime < largeTimes[1])
    }

    /// Large ones that fit into one group are not gathered while others wait.
    @Test func aGroupOfLargeCommitsEndsWhenASmallOneWaits() throws {
        let log = Gathered<String>()
        let first = holdWriter()
        let large = (0..<Limits.commitsPreparedMax).map {
            submit("large\($0)", Self.client(1, UInt64($0)), log, elements: 1500)
        }
        while database.pipeline.preparedWaiting.load(ordering: .acquiring) < Limits.commitsPreparedMax { sched_yield() }
        let small = submit("small", Self.client(1, 100), log)
        store.release()
        _ = first.wait()
        let smallTime = try small.wait().get().commitTime
        let largeTimes = try large.map { try $0.wait().get().commitTime }.sorted()
        #expect(largeTimes[0] < smallTime && smallTime < largeTimes[1])
    }

    /// When the store can't keep up, the large commits wait for what they have written, and the small ones don't.
    @Test func smallCommitsDoNotWaitForTheDelayOfLargeOnes() throws {
        let log = Gathered<String>()
        let size = CommitCost.groupUnitsMax + 1
        store.delayMicroseconds.store(1_000_000, ordering: .releasing)
        _ = try submit("large0", Self.client(1, 0), log, elements: size).wait().get()
        let large = submit("large1", Self.client(1, 1), log, elements: size)
        for number in 0..<20 { _ = try submit("small\(number)", Self.client(1, 2), log).wait().get() }
        while database.pipeline.preparedWaiting.load(ordering: .acquiring) == 0 { sched_yield() }
        _ = try submit("last", Self.client(1, 2), log).wait().get()
        #expect(!large.isGiven)
        clock.advance(seconds: 1)
        _ = try large.wait().get()
    }

    @Test func aGroupIsBoundedInTime() throws {
        let log = Gathered<String>()
        let first = holdWriter()
        let pending = (0..<50).map { submit("slow\($0)", Self.client(1, UInt64($0)), log, seconds: 0.02) }
        let groups = database.statistics.groups
        store.release()
        _ = first.wait()
        for promise in pending { _ = try promise.wait().get() }
        database.drain()
        // Fifty times 20 ms of work in groups of 50 ms.
        #expect(database.statistics.groups - groups >= 50 / 3)
    }

    @Test func commitsOfOneConnectionKeepTheirOrder() throws {
        var pending: [Promise<Result<CommitOutcome, Status>>] = []
        for number in 0..<60 {
            let promise = Promise<Result<CommitOutcome, Status>>()
            let elements = number.isMultiple(of: 3) ? (0..<2000).map { Value.integer(Int64($0)) } : []
            database.commit(
                [.set("c/one", map(("a", .array(elements)), ("n", .integer(Int64(number)))))],
                requester: Self.client(1, 1)
            ) { promise.give($0) }
            pending.append(promise)
        }
        let times = try pending.map { try $0.wait().get().commitTime }
        #expect(times == times.sorted())
        guard case .integer(59)? = try database.fields("c/one")?["n"] else {
            Issue.record("the last commit isn't the last")
            return
        }
    }

    /// Runs a test's action between the outcomes of a group's commits and their handling.
    private final class HookedStore: Store {
        private let inner = MemoryStore()
        let afterBody = Mutex<(@Sendable () -> Void)?>(nil)

        func snapshot() throws(Status) -> any Snapshot { try inner.snapshot() }

        func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
            try inner.write { transaction throws(Status) in
                let result = try body(transaction)
                let hook = afterBody.withLock { hook in
                    defer { hook = nil }
                    return hook
                }
                hook?()
                return result
            }
        }

        func maintain() { inner.maintain() }
        func close() { inner.close() }
    }

    /// Blocks its commit once, when it is first prepared.
    private final class Gate: CommitGuard {
        let isReached = Promise<Void>()
        let isOpen = Promise<Void>()

        func check(_ commit: GuardedCommit) throws(Status) {
            if !isReached.isGiven { isReached.give(()) }
            isOpen.wait()
        }
    }

    @Test func laterCommitsDoNotOvertakeACommitThatIsPreparedAgain() throws {
        let store = HookedStore()
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        let (large, small, last) = (
            Promise<Result<CommitOutcome, Status>>(), Promise<Result<CommitOutcome, Status>>(),
            Promise<Result<CommitOutcome, Status>>()
        )
        let gate = Gate()
        let elements = (0..<2000).map { Value.integer(Int64($0)) }
        database.commit(
            [.set("c/one", map(("a", .array(elements)), ("n", .integer(1))))], guard: gate,
            requester: Self.client(1, 1)
        ) { large.give($0) }
        // The snapshot contains it without this.
        gate.isReached.wait()
        try database.commit([.set("c/one", map(("n", .integer(0))))])
        store.afterBody.withLock { hook in
            hook = {
                for (number, promise) in [(Int64(2), small), (3, last)] {
                    database.commit(
                        [.set("c/one", map(("n", .integer(number))))], requester: Self.client(1, 1)
                    ) { promise.give($0) }
                }
            }
        }
        gate.isOpen.give(())
        let times = try [large, small, last].map { try $0.wait().get().commitTime }
        #expect(times == times.sorted())
        #expect(try database.fields("c/one")?["n"] == .integer(3))
        // Nothing is held back any more.
        #expect(try database.commit([.set("c/two", map())]).commitTime > times[2])
    }

    /// A commit that is queued behind another one of its connection is not a reason to prepare it on the writer.
    @Test(arguments: [1, 2, 20]) func largeCommitsAreNeverComputedByTheWriter(behind: Int) throws {
        let elements = (0..<2000).map { Value.integer(Int64($0)) }
        func large(_ number: Int) -> Promise<Result<CommitOutcome, Status>> {
            let promise = Promise<Result<CommitOutcome, Status>>()
            database.commit(
                [.set("c/one", map(("a", .array(elements)), ("n", .integer(Int64(number)))))],
                requester: Self.client(1, 1)
            ) { promise.give($0) }
            return promise
        }
        // The snapshot on which they are prepared does not contain this, while the writer is blocked with it.
        store.hold()
        let first = database.submit([.set("c/one", map(("n", .integer(-1))))])
        store.waitForWriter()
        let pending = (0...behind).map { large($0) }
        while database.pipeline.preparedWaiting.load(ordering: .acquiring) < min(pending.count, 2) { sched_yield() }
        store.release()
        _ = first.wait()
        let times = try pending.map { try $0.wait().get().commitTime }
        #expect(times == times.sorted())
        #expect(try database.fields("c/one")?["n"] == .integer(Int64(behind)))
        #expect(database.pipeline.counters.largeOnWriter.load(ordering: .relaxed) == 0)
        #expect(database.locks.isIdle)
        database.close()
    }

    /// Others change one of its documents all the time; after some tries they wait for it.
    @Test func aLargeCommitSucceedsUnderContention() throws {
        let increment = FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1)))
        let writes = try (0..<300).map { try Write.merge("c/\($0)", map(), [], transforms: [increment]) }
        let isOver = Atomic(false)
        let ended = Promise<Void>()
        let small = Atomic(0)
        let database = self.database
        let smallWrite = writes[7]
        @Sendable func again() {
            if isOver.load(ordering: .relaxed) { return ended.give(()) }
            database.commit([smallWrite], requester: Self.client(2, 2)) { _ in
                small.add(1, ordering: .relaxed)
                again()
            }
        }
        again()
        var pending: [Promise<Result<CommitOutcome, Status>>] = []
        for _ in 0..<20 {
            let promise = Promise<Result<CommitOutcome, Status>>()
            database.commit(writes, requester: Self.client(1, 1)) { promise.give($0) }
            pending.append(promise)
        }
        for promise in pending { _ = try promise.wait().get() }
        isOver.store(true, ordering: .relaxed)
        ended.wait()
        database.drain()
        #expect(database.pipeline.counters.largeOnWriter.load(ordering: .relaxed) == 0)
        guard case .integer(let number)? = try database.fields("c/7")?["n"] else {
            Issue.record("no number")
            return
        }
        #expect(number == 20 + Int64(small.load(ordering: .relaxed)))
        #expect(database.locks.isIdle)
    }

    // MARK: Admission

    private func request(_ requester: Requester, cost: Int, sizeBytes: Int = 0) -> CommitPipeline.Request {
        let request = CommitPipeline.Request(
            writes: [], owner: 0, requestTime: clock.now(), guard: nil, sizeBytes: sizeBytes,
            requester: requester, waitUntil: 0, completion: { _ in })
        request.cost = cost
        return request
    }

    private func enters(_ admission: CommitAdmission, _ request: CommitPipeline.Request) -> Bool {
        statusOf { () throws(Status) in _ = try admission.enter(request) } == nil
    }

    @Test func queuedWorkBeyondASecondFailsWhileOthersWait() throws {
        let admission = CommitAdmission()
        let heavy = request(Self.client(1, 1), cost: 36_000)
        var entered = 0
        // A client alone may queue as much as it likes.
        while entered < 30, enters(admission, heavy) { entered += 1 }
        #expect(entered == 30)
        let other = request(Self.client(2, 9), cost: 1)
        #expect(enters(admission, other))
        #expect(!enters(admission, heavy))
        // Also another connection of that account, which has nothing queued.
        #expect(enters(admission, request(Self.client(1, 2), cost: 1)))
        #expect(enters(admission, request(.administrator(connection: 5), cost: 36_000)))
        for _ in 0..<29 { admission.leave(heavy) }
        #expect(enters(admission, heavy))
    }

    @Test func clientsCannotExcludeAdministrators() throws {
        let admission = CommitAdmission()
        var count = 0
        for connection in 0..<UInt64(Limits.commitQueueMax) {
            if enters(admission, request(Self.client(connection % 7, connection % 50), cost: 1)) { count += 1 }
        }
        #expect(count == Limits.commitQueueMax * 3 / 4)
        #expect(enters(admission, request(.administrator(connection: 5), cost: 1)))
        // The account with the most leaves capacity for others.
        let single = CommitAdmission()
        count = 0
        while count < Limits.commitQueueMax, enters(single, request(Self.client(1, 1), cost: 1, sizeBytes: 1)) {
            count += 1
        }
        #expect(count == Limits.commitQueueMax / 2)
        #expect(enters(single, request(Self.client(1, 2), cost: 1)))
        #expect(enters(single, request(Self.client(2, 3), cost: 1)))
    }
}
