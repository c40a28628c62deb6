import HearthModel
import HearthEngine
import Synchronization
import Testing

/// A store without writes, which does not exist yet.
@Suite struct DeferredStoreTests {
    private let made = Made()

    /// The stores that are made instead of files.
    private final class Made: Sendable {
        let count = Atomic(0)
        let isRefusing = Atomic(false)
        let store = MemoryStore()

        func make() throws(Status) -> any Store {
            if isRefusing.load(ordering: .relaxed) { throw .unavailable("The disk is full.") }
            count.add(1, ordering: .relaxed)
            return store
        }
    }

    private func deferred(worth: @escaping @Sendable () -> Bool = { true }) -> DeferredStore {
        DeferredStore(isWorthKeeping: { _ in worth() }, make: { [made] () throws(Status) in try made.make() })
    }

    private var madeCount: Int { made.count.load(ordering: .relaxed) }

    @Test func readingMakesNothing() throws {
        let store = deferred()
        #expect(try store.snapshot().get(.meta, [1]) == nil)
        try store.write { transaction throws(Status) in
            _ = try transaction.get(.documents, [1])
            try transaction.delete(.feed, KeyRange(lower: [], upper: nil), limit: 10)
        }
        #expect(madeCount == 0 && !store.isMade)
    }

    /// An observer of commits reads the state before in the middle of a write.
    @Test func aSnapshotWithinAWriteDoesNotWaitForIt() throws {
        let store = deferred()
        try store.write { transaction throws(Status) in
            try transaction.put(.meta, [1], [1])
            #expect(try store.snapshot().get(.meta, [1]) == nil)
        }
        #expect(try store.snapshot().get(.meta, [1]) == [1])
    }

    @Test func aFailedWriteMakesNoStore() throws {
        let store = deferred()
        #expect(throws: Status.self) {
            try store.write { transaction throws(Status) in
                try transaction.put(.meta, [1], [1])
                throw Status.invalidArgument("No.")
            }
        }
        #expect(madeCount == 0)
        #expect(try store.snapshot().get(.meta, [1]) == nil)
    }

    @Test func theFirstWriteMakesTheStoreAndOldSnapshotsStay() throws {
        let store = deferred()
        let before = try store.snapshot()
        try store.write { transaction throws(Status) in try transaction.put(.documents, [1], [7]) }
        #expect(madeCount == 1 && store.isMade)
        #expect(try before.get(.documents, [1]) == nil)
        #expect(try store.snapshot().get(.documents, [1]) == [7])
        #expect(try made.store.snapshot().get(.documents, [1]) == [7])
        try store.write { transaction throws(Status) in try transaction.put(.documents, [2], [8]) }
        #expect(madeCount == 1)
        #expect(try made.store.snapshot().get(.documents, [2]) == [8])
    }

    @Test func aWriteWithoutAFileIsStoredWithTheFirstThatNeedsOne() throws {
        let isWorth = Made()
        isWorth.isRefusing.store(true, ordering: .relaxed)
        let store = deferred { !isWorth.isRefusing.load(ordering: .relaxed) }
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        #expect(madeCount == 0)
        #expect(try store.snapshot().get(.meta, [1]) == [1])
        isWorth.isRefusing.store(false, ordering: .relaxed)
        try store.write { transaction throws(Status) in try transaction.put(.documents, [1], [7]) }
        #expect(try made.store.snapshot().get(.meta, [1]) == [1])
    }

    @Test func aWriteWithoutAStoreLeavesNothingAndTheNextOneTriesAgain() throws {
        let store = deferred()
        made.isRefusing.store(true, ordering: .relaxed)
        #expect(throws: Status.unavailable("The disk is full.")) {
            try store.write { transaction throws(Status) in try transaction.put(.documents, [1], [7]) }
        }
        #expect(try store.snapshot().get(.documents, [1]) == nil)
        made.isRefusing.store(false, ordering: .relaxed)
        try store.write { transaction throws(Status) in try transaction.put(.documents, [2], [8]) }
        #expect(try store.snapshot().get(.documents, [1]) == nil)
        #expect(try store.snapshot().get(.documents, [2]) == [8])
    }

    @Test func usesAfterTheEndFailWithItsReason() throws {
        for isMade in [false, true] {
            let store = DeferredStore(make: { MemoryStore() })
            if isMade { try store.keep() }
            let snapshot = try store.snapshot()
            store.close(because: .notFound("There is no such database."))
            #expect(throws: Status.notFound("There is no such database.")) { try snapshot.get(.meta, [1]) }
            #expect(throws: Status.notFound("There is no such database.")) { try store.snapshot() }
            #expect(throws: Status.notFound("There is no such database.")) {
                try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
            }
        }
    }
}
