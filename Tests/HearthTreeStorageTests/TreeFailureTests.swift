import Glibc
import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage

/// The store fails at every single operation of a group of writes.
@Suite struct TreeFailureTests {
    let store = FaultyStore()
    let database: TreeDatabase
    let counter = Counter()

    final class Counter: TreeObserver {
        let counts = Mutex((prepared: 0, published: 0, discarded: 0))
        func prepare(_ commit: TreeCommit, after: TreeView) { counts.withLock { $0.prepared += 1 } }
        func publish() { counts.withLock { $0.published += 1 } }
        func discard() { counts.withLock { $0.discarded += 1 } }
    }

    init() throws {
        database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        try database.define([
            TreeIndexDefinition(pattern: ["a"], index: .child("x")),
            TreeIndexDefinition(pattern: ["$a"], index: .value),
        ])
        database.finishBuilding()
        try database.write(
            TreeWrite(
                ("a", tree("{\"p\":{\"x\":1,\".priority\":2},\"q\":{\"x\":\"y\"}}")), ("b", 5),
                ("c", Node(.string(String(repeating: "long", count: 300))))))
        database.setObserver(counter)
    }

    /// An undecided condition makes its connection's jobs wait; the write of another connection fails meanwhile.
    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: 0..<40) func everyJobIsPerformedBesideWritesThatFail(
        operation: Int
    )
        throws
    {
        var options = TreeWriterOptions()
        options.compareBytesMax = 200
        let database = try TreeDatabase(name: "jobs", store: store, clock: SystemClock(), options: options)
        defer { database.close() }
        try database.write(TreeWrite(("big", Node(children: (0..<200).map { (TreeKey("k\($0)"), 1) }))))
        let one = Requester(account: 1, connection: 1, isAdministrator: false)
        let other = Requester(account: 2, connection: 2, isAdministrator: false)
        store.hold()
        let empty = database.begin(TreeWrite(changes: [], nowMilliseconds: 0))
        store.waitForWriter()
        var conditional = TreeWrite(("big", 1))
        conditional.condition = TreeWrite.Condition(path: "big", hash: "another", reveals: true)
        let outcomes = [Promise<TreeOutcome>(), Promise<TreeOutcome>()]
        let performed = [Promise<Bool>(), Promise<Bool>()]
        database.submit(conditional, for: one) { outcomes[0].give($0) }
        database.perform(for: one) { _ in performed[0].give(true) }
        database.submit(TreeWrite(("a/s", 1)), for: other) { outcomes[1].give($0) }
        database.perform(for: other) { _ in performed[1].give(true) }
        store.fail(at: operation)
        store.release()
        _ = empty.wait()
        for outcome in outcomes { _ = outcome.wait() }
        for job in performed { #expect(job.wait()) }
        store.fail(at: nil)
    }

    /// A job that waits for a write is also answered when the database is closed.
    @Test(.timeLimit(.minutes(Patience.minutes))) func heldJobsArePerformedAtTheEnd() throws {
        var options = TreeWriterOptions()
        options.compareBytesMax = 200
        // No computation beside the writer ever ends.
        let database = try TreeDatabase(
            name: "end", store: FaultyStore(), clock: SystemClock(), options: options, TreeBackground { _, _, _ in })
        try database.write(TreeWrite(("big", Node(children: (0..<200).map { (TreeKey("k\($0)"), 1) }))))
        let one = Requester(account: 1, connection: 1, isAdministrator: false)
        var conditional = TreeWrite(("big", 1))
        conditional.condition = TreeWrite.Condition(path: "big", hash: "another", reveals: true)
        let outcome = Promise<TreeOutcome>()
        let refusal = Promise<Status?>()
        database.submit(conditional, for: one) { outcome.give($0) }
        database.perform(for: one) { view in
            do throws(Status) {
                _ = try view.node(at: "big")
                refusal.give(nil)
            } catch {
                refusal.give(error)
            }
        }
        try database.write(TreeWrite(("other", 1)))
        database.close()
        #expect(outcome.wait().commit == nil)
        #expect(refusal.wait()?.code == .unavailable)
    }

    /// The disk is full when the rest of a large write must be deleted, and no write follows.
    @Test(.timeLimit(.minutes(Patience.minutes))) func theRestOfALargeWriteIsDeletedWithoutAnotherWrite() throws {
        final class Watcher: TreeObserver {
            let store: FaultyStore
            let planned = Atomic(0)
            init(_ store: FaultyStore) { self.store = store }
            func prepare(_ commit: TreeCommit, after: TreeView) {}
            func publish() {
                store.refuse(transactions: 3)
                planned.add(3, ordering: .relaxed)
            }
            func discard() {}
        }
        let store = FaultyStore()
        let database = try TreeDatabase(
            name: "rest", store: store, clock: SystemClock(), options: .sliced(nodes: 10, records: 7))
        defer { database.close() }
        let watcher = Watcher(store)
        database.setObserver(watcher)
        let children = Node(children: (0..<40).map { (TreeKey("k\($0)"), 1) })
        let promises = [database.begin(TreeWrite(("a", children))), database.begin(TreeWrite(("b", children)))]
        // The disk may still be full for the second one; it is answered.
        for promise in promises { _ = promise.wait() }
        #expect(eventually { database.isSettled })
        let planned = watcher.planned.load(ordering: .relaxed)
        #expect(planned > 0)
        #expect(store.refusedTransactions == planned)
    }

    /// One connection may use two accounts: with two tokens over one connection.
    @Test func nothingTakenIsLostWhenItsConnectionIsHeldAlready() {
        var queue = TreeWriteQueue()
        let one = Requester(account: 1, connection: 1, isAdministrator: false)
        queue.hold(one, before: [(.stage(ticket: 2), 1)])
        queue.append(.stage(ticket: 3), for: one, cost: 1)
        queue.hold(one, before: [(.stage(ticket: 1), 1)])
        queue.release(one)
        var tickets: [UInt64] = []
        while let entry = queue.popFirst() { if case .stage(let ticket) = entry.job { tickets.append(ticket) } }
        #expect(tickets == [1, 2, 3])
    }

    /// Between two large slices the small jobs run, and each connection's jobs keep their order.
    @Test func smallJobsThatArePutBackComeFirst() {
        var queue = TreeWriteQueue()
        func entry(_ number: UInt64, of connection: UInt64, cost: Int) -> TreeWriteQueue.Entry {
            let requester = Requester(account: 1, connection: connection, isAdministrator: false)
            return TreeWriteQueue.Entry(job: .stage(ticket: number), requester: requester, cost: cost)
        }
        queue.putBack([entry(9, of: 9, cost: 1)])
        queue.putBack([
            entry(1, of: 1, cost: 5), entry(2, of: 2, cost: 1_900), entry(3, of: 1, cost: 1), entry(4, of: 2, cost: 1),
            entry(5, of: 3, cost: 1_900), entry(6, of: 4, cost: 64), entry(7, of: 1, cost: 2_000),
            entry(8, of: 1, cost: 1),
        ])
        var tickets: [UInt64] = []
        while let entry = queue.popFirst() { if case .stage(let ticket) = entry.job { tickets.append(ticket) } }
        #expect(tickets == [1, 3, 6, 2, 4, 5, 7, 8, 9])
    }

    @Test(arguments: [
        Status.unavailable("The disk is full."), .internalError("A bug."), Status(.dataLoss, "A bad page."),
    ])
    func nothingIsHalfWritten(_ status: Status) throws {
        var operation = 0
        while true {
            let before = try contents(store)
            store.hold()
            let empty = database.begin(TreeWrite(changes: [], nowMilliseconds: 0))
            store.waitForWriter()
            let promises = [
                database.begin(
                    TreeWrite(
                        ("a/p", .empty), ("a/q/x/deep", 3), ("c", .empty), ("d/.priority", 4),
                        ("a/r", tree("{\"x\":[1,2],\".priority\":\"p\"}")))),
                database.begin(TreeWrite(("b/below", Node(.integer(Int64(operation)))), ("b/.priority", 9))),
            ]
            // The empty write has a group, and operations, of its own.
            store.fail(at: operation + 2, with: status)
            store.release()
            let version = empty.wait().commit?.version
            let outcomes = promises.map { $0.wait() }
            store.fail(at: nil)
            let failures = outcomes.filter { $0.commit == nil }.count
            if failures == 0 { break }
            if failures == 2 {
                #expect(try contents(store) == before, "operation \(operation)")
                #expect(try database.read(\.version) == version)
            }
            for outcome in outcomes {
                guard case .failed(let failure) = outcome else { continue }
                #expect(failure == status || failure.code == .unavailable, "operation \(operation)")
            }
            // Back to the initial value; the entries must agree with the records, whatever has failed.
            try database.write(
                TreeWrite(
                    (
                        .root,
                        tree("{\"a\":{\"p\":{\"x\":1,\".priority\":2},\"q\":{\"x\":\"y\"}},\"b\":5}")
                    ), ("c", Node(.string(String(repeating: "long", count: 300))))))
            if failures == 2 { #expect(try contents(store) == before, "operation \(operation)") }
            operation += 1
        }
        #expect(operation > 40)
        let counts = counter.counts.withLock { $0 }
        // An error of the store while a write is computed may be the error of that write alone.
        #expect(counts.discarded > (status.code == .unavailable ? 40 : 20))
        #expect(counts.published > operation)
        #expect(database.statistics.failedGroups == counts.discarded)
    }

    @Test func buildingContinuesAfterAFailure() throws {
        try database.write(
            TreeWrite(("m", Node(children: (0..<1200).map { (TreeKey($0), Node(.integer(Int64($0 % 7)))) }))))
        try database.define([])
        database.finishBuilding()
        for operation in [0, 3, 700] {
            let definition = TreeIndexDefinition(pattern: ["m"], index: .value)
            try database.define([definition])
            store.fail(at: operation)
            // Fails in the background, or in this write's group, which then is tried again.
            while database.isBuilding { _ = database.begin(TreeWrite(("touch", 1))).wait() }
            store.fail(at: nil)
            #expect(database.readyIndexes == [definition])
            var query = TreeQuery()
            query.index = .value
            query.limit = 400
            let window = try database.read { try $0.result(of: query, at: "m") }
            #expect(window.isIndexed)
            #expect(window.children.count == 400)
            #expect(window.children.last?.node == 2)
            try database.define([])
            database.finishBuilding()
        }
        #expect(try contents(store).keys.allSatisfy { $0[1] != PathCode.Space.index })
    }
}
