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

/// The share of each client in the waiting writes of a tree.
@Suite struct TreeAdmissionTests {
    private func client(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    @Test func anAccountHasAHalfAndAConnectionWithNothingIsAdmitted() {
        var admission = TreeAdmission(countMax: 100, bytesMax: 1000)
        var count = 0
        while count < 100, admission.enter(client(1, 1), bytes: 1) == nil { count += 1 }
        #expect(count == 50)
        #expect(admission.enter(client(1, 1), bytes: 1) == TreeAdmission.isOverShare)
        #expect(admission.enter(client(1, 2), bytes: 1) == nil)
        #expect(admission.enter(client(2, 3), bytes: 1) == nil)
        admission.leave(client(1, 1), bytes: 1)
        #expect(admission.enter(client(1, 2), bytes: 1) == nil)
    }

    @Test func bytesHaveTheSameShares() {
        var admission = TreeAdmission(countMax: 100, bytesMax: 1000)
        #expect(admission.enter(client(1, 1), bytes: 400) == nil)
        #expect(admission.enter(client(1, 1), bytes: 101) == TreeAdmission.isOverShare)
        #expect(admission.enter(client(1, 2), bytes: 350) == nil)
        #expect(admission.enter(client(2, 3), bytes: 1) == TreeAdmission.isFull)
        #expect(admission.enter(.administrator(connection: 4), bytes: 200) == nil)
        #expect(admission.enter(.server, bytes: 51) == TreeAdmission.isFull)
    }

    @Test func clientsDoNotBlockAdministrators() {
        var admission = TreeAdmission(countMax: 1000, bytesMax: 1 << 20)
        let requesters = (0..<1000).map { client(UInt64($0 % 7), UInt64($0 % 70)) }
        let entered = requesters.filter { admission.enter($0, bytes: 1) == nil }
        #expect(entered.count == 750)
        #expect(admission.enter(.administrator(connection: 100), bytes: 1) == nil)
        admission.leave(.administrator(connection: 100), bytes: 1)
        for requester in entered { admission.leave(requester, bytes: 1) }
        #expect(admission.queued == (0, 0))
        #expect(admission.enter(client(1, 1), bytes: 1) == nil)
    }

    /// One connection sends as many writes as are accepted, while the writer is blocked.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aClientThatFillsItsShareBlocksNobody() throws {
        let store = FaultyStore()
        let database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        defer { database.close() }
        store.hold()
        let taken = Atomic(0)
        for _ in 0..<Limits.treeWriteQueueMax {
            database.submit(TreeWrite(("a", 1)), for: client(1, 1)) { outcome in
                if outcome.commit != nil { taken.add(1, ordering: .relaxed) }
            }
        }
        let others = [client(1, 2), client(2, 3), .administrator(connection: 4)].map { requester in
            let promise = Promise<TreeOutcome>()
            database.submit(TreeWrite(("b", 1)), for: requester) { promise.give($0) }
            return promise
        }
        store.release()
        for other in others { #expect(other.wait().commit != nil) }
        try database.write(TreeWrite(("c", 1)))
        while database.statistics.queuedWrites > 0 { sched_yield() }
        #expect(taken.load(ordering: .relaxed) == Limits.treeWriteQueueMax / 2)
    }
}
