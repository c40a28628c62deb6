import HearthConcurrency
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Small commits that rest on large documents: the writer moves them to the preparer, because others wait for it.
@Suite struct HeavyDocumentTests {
    let store = MemoryStore()
    let clock = StoppedClock()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: clock)
    }

    private static let names = MapValue((0..<60_000).map { MapValue.Field(name: "f\($0)", value: .null) })
    /// One value for the index, some 600 KB.
    private static let large = map(("v", .array([.map(names)])), ("n", .integer(0)))

    private func client(_ connection: UInt64) -> Requester {
        Requester(account: 1, connection: connection, isAdministrator: false)
    }

    private func send(
        _ writes: [Write], _ connection: UInt64 = 1, guard commitGuard: (any CommitGuard)? = nil
    ) -> Promise<Result<CommitOutcome, Status>> {
        let promise = Promise<Result<CommitOutcome, Status>>()
        database.commit(writes, guard: commitGuard, requester: client(connection)) { promise.give($0) }
        return promise
    }

    private var left: Int { database.pipeline.counters.leftToPreparer.load(ordering: .relaxed) }

    private final class Reading: CommitGuard {
        let path: ResourcePath?
        let swallows: Bool
        init(_ path: ResourcePath? = nil, swallows: Bool = false) {
            self.path = path
            self.swallows = swallows
        }
        func check(_ commit: GuardedCommit) throws(Status) {
            guard let path else { return }
            do throws(Status) {
                _ = try commit.after(path)
            } catch {
                // Like a rule that continues with its other operand.
                if !swallows { throw error }
            }
        }
    }

    @Test func aFieldOfALargeDocumentIsChangedOnASnapshot() throws {
        try database.commit([.set("c/large", Self.large)])
        #expect(left == 0)
        for commitGuard in [nil, Reading()] {
            let before = left
            let promise = send([try .merge("c/large", map(("n", .integer(7))), ["n"])], guard: commitGuard)
            _ = try promise.wait().get()
            #expect(left == before + 1)
        }
        #expect(try database.fields("c/large")?["n"] == .integer(7))
        // Others are computed by the writer as usual.
        _ = try send([.set("c/small", map(("n", .integer(1))))]).wait().get()
        #expect(left == 2)
        #expect(database.pipeline.counters.largeOnWriter.load(ordering: .relaxed) == 0)
    }

    @Test(arguments: [true, false]) func documentsThatRulesReadCountToo(swallows: Bool) throws {
        try database.commit([.set("c/large", Self.large)])
        let reading = Reading(resource("c/large").path, swallows: swallows)
        _ = try send([.set("c/small", map(("n", .integer(1))))], guard: reading).wait().get()
        #expect(left == 1)
        #expect(try database.fields("c/small")?["n"] == .integer(1))
    }

    @Test func commitsOfAConnectionKeepTheirOrderAndLeaveNothingCounted() throws {
        try database.commit([.set("c/large", Self.large)])
        var pending: [Promise<Result<CommitOutcome, Status>>] = []
        for number in 0..<20 {
            pending.append(
                send([
                    number % 3 == 0
                        ? try .merge("c/large", map(("n", .integer(Int64(number)))), ["n"])
                        : .set("c/small", map(("n", .integer(Int64(number)))))
                ]))
        }
        let times = try pending.map { try $0.wait().get().commitTime }
        #expect(times == times.sorted())
        #expect(try database.fields("c/large")?["n"] == .integer(18))
        #expect(try database.fields("c/small")?["n"] == .integer(19))
        database.drain()
        let queued = database.pipeline.admission.queued
        #expect(queued.count == 0 && queued.bytes == 0)
        #expect(database.pipeline.admission.isIdle)
    }

    // MARK: Documents that rules read

    /// Changes the document that it reads each time it is called on a snapshot.
    private final class Restless: CommitGuard {
        private let database: Database
        let asked = Atomic(0)
        init(_ database: Database) { self.database = database }
        func check(_ commit: GuardedCommit) throws(Status) {
            _ = try commit.before(resource("roles/x").path)
            // First alone, then with all, and then again by the writer.
            if asked.add(1, ordering: .relaxed).newValue > 2 { return }
            try database.commit([.set("roles/x", map(("n", .integer(1))))])
        }
    }

    @Test func documentsThatOnlyRulesReadAreJudgedAgainAndNotLocked() throws {
        try database.commit([.set("roles/x", map())])
        let restless = Restless(database)
        _ = try send((0..<300).map { .set("c/\($0)", map()) }, guard: restless).wait().get()
        #expect(restless.asked.load(ordering: .relaxed) == 3)
        #expect(try database.fields("c/299") != nil)
        #expect(database.locks.isIdle)
    }

    /// Denies when the document says so.
    private struct Asking: CommitGuard {
        let prepared: Promise<Void>
        let changed: Promise<Void>
        let asked = Counter()
        final class Counter: Sendable { let count = Atomic(0) }
        func check(_ commit: GuardedCommit) throws(Status) {
            let document = try commit.after(resource("roles/x").path)
            if asked.count.add(1, ordering: .relaxed).newValue == 2 {
                prepared.give(())
                changed.wait()
            }
            if document?["ok"] != .boolean(true) { throw Status(.permissionDenied, "no") }
        }
    }

    @Test func aRevokedRightIsCheckedAgain() throws {
        try database.commit([.set("roles/x", map(("ok", .boolean(true))))])
        let asking = Asking(prepared: Promise<Void>(), changed: Promise<Void>())
        let promise = send((0..<300).map { .set("c/\($0)", map()) }, guard: asking)
        asking.prepared.wait()
        try database.commit([.set("roles/x", map(("ok", .boolean(false))))])
        asking.changed.give(())
        #expect(throws: Status.self) { try promise.wait().get() }
        #expect(try database.fields("c/0") == nil)
    }

    /// Takes long for all writes of a commit, on a snapshot or when the writer calls it again, and changes the document
    /// that it reads on a snapshot several times.
    private final class Slow: CommitGuard {
        private let database: Database
        private let clock: StoppedClock
        private let isSlowBesideWriter: Bool
        private let changesLeft: Atomic<Int>
        /// It was called on a snapshot, and has changed the document that it read.
        private let isOutdated = Atomic(false)
        /// For all writes.
        let asked = Atomic(0)

        init(_ database: Database, _ clock: StoppedClock, changes: Int, isSlowBesideWriter: Bool = false) {
            (self.database, self.clock, self.isSlowBesideWriter) = (database, clock, isSlowBesideWriter)
            changesLeft = Atomic(changes)
        }

        func check(_ commit: GuardedCommit) throws(Status) {
            // The first write alone.
            if commit.writes.count == 1 { return }
            asked.add(1, ordering: .relaxed)
            // The writer calls it now.
            if isOutdated.exchange(false, ordering: .relaxed) { clock.advance(seconds: 0.021) }
            _ = try commit.before(resource("roles/x").path)
            if changesLeft.load(ordering: .relaxed) == 0 { return }
            let number = changesLeft.subtract(1, ordering: .relaxed).newValue
            try database.commit([.set("roles/x", map(("n", .integer(Int64(number)))))])
            if isSlowBesideWriter {
                clock.advance(seconds: 0.021)
            } else {
                isOutdated.store(true, ordering: .relaxed)
            }
        }
    }

    @Test(arguments: [true, false]) func aLongJudgementIsMadeOnASnapshot(isSlowBesideWriter: Bool) throws {
        try database.commit([.set("roles/x", map())])
        let slow = Slow(database, clock, changes: 3, isSlowBesideWriter: isSlowBesideWriter)
        _ = try send((0..<300).map { .set("c/\($0)", map()) }, guard: slow).wait().get()
        #expect(slow.asked.load(ordering: .relaxed) == (isSlowBesideWriter ? 4 : 7))
        #expect(left == (isSlowBesideWriter ? 0 : 3))
        #expect(try database.fields("c/299") != nil)
        #expect(database.pipeline.admission.isIdle && database.locks.isIdle)
    }

    @Test func aJudgementThatIsAlwaysTooLateFails() throws {
        try database.commit([.set("roles/x", map())])
        let slow = Slow(database, clock, changes: .max)
        let outcome = send((0..<300).map { .set("c/\($0)", map()) }, guard: slow).wait()
        #expect(outcome.failure?.code == .aborted)
        #expect(left == Limits.commitPreparationsMax)
        #expect(try database.fields("c/0") == nil)
        // It does not delay others either.
        _ = try send([.set("c/0", map())]).wait().get()
        database.drain()
        #expect(database.pipeline.admission.isIdle && database.locks.isIdle)
    }

    /// The writer judges again within a time limit, whatever happened to the documents that the guard reads.
    @Test func aGuardThatTakesTooLongReadsNoMoreDocuments() throws {
        var asked = 0
        let reads = GuardReads(isOver: {
            asked += 1
            return asked == 21
        })
        for _ in 0..<20 { try reads.willRead() }
        #expect(!reads.isTooMuch)
        // Nor when its rules continue without documents that they could not read.
        for _ in 0..<2 { #expect(throws: StagedCommit.isTooMuch) { try reads.willRead() } }
        #expect(reads.isTooMuch && asked == 21)
    }
}
