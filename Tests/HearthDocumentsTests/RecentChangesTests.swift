import HearthConcurrency
import HearthModel
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Documents of the latest commits, which all databases of a process hold together.
@Suite struct RecentChangesTests {
    private func set(_ version: Int64, bytes: Int) -> ChangeSet {
        let document = StoredDocument(
            createVersion: 1, updateVersion: version, fields: Array(repeating: 0, count: bytes))
        return ChangeSet(version: version, changes: [Change(key: [1], before: nil, after: document)])
    }

    @Test(arguments: [1, 10, 100]) func theMemoryOfAllDatabasesIsBounded(count: Int) {
        let shared = SharedCacheBytes(max: 8 << 20)
        var all = (0..<count).map { _ in RecentChanges(since: 0, shared: shared) }
        for version in 1...200 as ClosedRange<Int64> {
            for recent in all {
                recent.append(set(version, bytes: 100_000))
                let held = recent.changes(after: version - 1, through: version).map { $0.map(\.version) }
                #expect(held == nil || held == [version])
            }
        }
        // A chunk is dropped as a whole.
        #expect(shared.used.load(ordering: .relaxed) <= 8 << 20 + count * (1 << 20 + RecentChanges.sharedBytesMin))
        if count > 1 { all[0].reset(to: 300) }
        all = []
        #expect(shared.used.load(ordering: .relaxed) == 0)
    }

    @Test func littleIsCachedWhileMemoryIsTightAndItIsComplete() {
        let pool = MemoryPool(bytesMax: 8 << 20)
        let shared = SharedCacheBytes(max: 8 << 20, pool: pool)
        let recent = RecentChanges(since: 0, shared: shared)
        for version in 1...70 as ClosedRange<Int64> { recent.append(set(version, bytes: 100_000)) }
        recent.fit()
        #expect(recent.reaches(0))
        let budget = MemoryBudget(bytesMax: 8 << 20, shareBytesMax: 8 << 20, loan: MemoryLoan(pool, ownBytes: 0))
        let held = budget.reservation(for: .administrator(connection: 1))
        #expect(held.grow(by: 6 << 20) && pool.isTight)
        recent.fit()
        // An eighth, and little is a quarter; a chunk is dropped as a whole.
        #expect(shared.used.load(ordering: .relaxed) <= 2 << 20)
        #expect(!recent.reaches(0) && recent.changes(after: 0, through: 70) == nil)
        #expect(recent.changes(after: 69, through: 70).map { $0.map(\.version) } == [70])
        recent.append(set(71, bytes: 100_000))
        #expect(recent.changes(after: 69, through: 71).map { $0.map(\.version) } == [70, 71])
    }
}
