import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthDocuments
@testable import HearthEngine

/// Documents are deleted when they have expired by the policy and the value of that moment, and no others.
@Suite struct ExpiryTests {
    private let clock = StoppedClock()
    private let store = FaultyStore()
    private let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: clock)
    }

    private static func policy(
        _ path: String = "until", of group: String = "c", offset: Int64 = 0,
        indexes: [FieldOverride.Index] = FieldOverride.automaticIndexes
    ) throws(Status) -> FieldOverride {
        FieldOverride(
            collectionID: group, path: try FieldPath(parsing: path), indexes: indexes,
            timeToLive: .init(offsetSeconds: offset))
    }

    /// A time so many seconds from now.
    private func time(_ seconds: Double) -> Value {
        .timestamp(Timestamp(microseconds: clock.now().microseconds + Int64(seconds * 1e6)))
    }

    private func step(_ database: Database, limit: Int = 500) -> Result<Database.ExpiryStep, Status> {
        let promise = Promise<Result<Database.ExpiryStep, Status>>()
        database.deleteExpired(limit: limit) { promise.give($0) }
        return promise.wait()
    }

    private func exist(_ paths: String...) throws -> [Bool] { try paths.map { try database.fields($0) != nil } }

    private var isSound: Bool { get throws { try IntegrityCheck.run(database).isSound } }

    @Test func whatHasATimeThatHasComeIsDeletedAtAnyDepth() throws {
        try database.setCatalog([], [try Self.policy()])
        try database.commit([
            .set("c/over", map(("until", time(-1)))), .set("c/now", map(("until", time(0)))),
            .set("c/later", map(("until", time(60)))), .set("c/over/d/x", map(("until", time(-1)))),
            .set("c/over/c/deep", map(("until", time(-100)))), .set("d/other", map(("until", time(-1)))),
            .set("c/none", map()), .set("c/number", map(("until", .integer(0)))),
            .set("c/string", map(("until", .string("1970-01-01T00:00:00Z")))),
            .set("c/list", map(("until", .array([time(-1)])))), .set("c/null", map(("until", .null))),
            .set("c/map", map(("until", .map(map(("until", time(-1))))))),
        ])
        #expect(try step(database).get() == .init(deletedCount: 3, isMore: false, nextExpiry: nil))
        #expect(try exist("c/over", "c/now", "c/over/c/deep") == [false, false, false])
        #expect(
            try exist("c/later", "c/over/d/x", "d/other", "c/none", "c/number", "c/string", "c/list", "c/null", "c/map")
                .allSatisfy { $0 })
        let next = clock.now().microseconds + 60_000_000
        #expect(try step(database).get() == .init(nextExpiry: next))
        clock.advance(seconds: 60)
        #expect(try step(database).get().deletedCount == 1)
        #expect(try step(database).get() == .init())
        #expect(database.expiredCount == 4 && database.expiryOverdueSeconds == 0)
        #expect(try isSound)
    }

    @Test func aFieldOfAMapAndAnOffset() throws {
        try database.setCatalog([], [try Self.policy("a.`b c`", offset: 100)])
        try database.commit([.set("c/x", map(("a", .map(map(("b c", time(0)))))))])
        #expect(try step(database).get().deletedCount == 0)
        clock.advance(seconds: 99.999999)
        #expect(try step(database).get().deletedCount == 0)
        clock.advance(seconds: 0.000002)
        #expect(try step(database).get().deletedCount == 1)
        // No sum is too large.
        let last = Timestamp(microseconds: Timestamp.secondsMax * 1_000_000)
        try database.commit([.set("c/y", map(("a", .map(map(("b c", .timestamp(last)))))))])
        #expect(try step(database).get() == .init(nextExpiry: last.microseconds + 100_000_000))
    }

    @Test func documentsThatWereThereBeforeThePolicyExpireAndAnExemptionChangesNothing() throws {
        for number in 0..<700 { try database.commit([.set("c/\(number)", map(("until", time(-1))))]) }
        try database.setCatalog([], [try Self.policy(indexes: [])])
        #expect(database.catalog.definitions.map(\.state) == [.ready])
        #expect(try isSound)
        #expect(try step(database).get() == .init(deletedCount: 500, isMore: true))
        #expect(try step(database).get() == .init(deletedCount: 200))
        #expect(try isSound)
        try database.setCatalog([], [])
        let view = try database.view()
        #expect(try view.snapshot.count(.entries, KeyRange(lower: [], upper: nil), limit: .max) == 0)
    }

    @Test func aBuildThatWasInterruptedIsResumed() throws {
        for number in 0..<700 { try database.commit([.set("c/\(number)", map(("until", time(-1))))]) }
        var operation = 0
        while !database.catalog.definitions.contains(where: { $0.state == .creating }) {
            try database.setCatalog([], [])
            store.fail(at: operation)
            _ = statusOf { () throws(Status) in try database.setCatalog([], [try Self.policy()]) }
            store.fail(at: nil)
            operation += 1
        }
        let again = try Database(name: testDatabaseName, store: store, clock: clock)
        let promise = Promise<Result<Void, Status>>()
        again.resumeIndexes { promise.give($0) }
        try promise.wait().get()
        #expect(again.catalog.definitions.map(\.state) == [.ready])
        #expect(try step(again).get().deletedCount == 500 && step(again).get().deletedCount == 200)
        #expect(try IntegrityCheck.run(again).isSound)
    }

    /// Queries have nothing of the policy's index, and automatic indexes nothing of the policy.
    @Test func aPolicyChangesNoAutomaticEntry() throws {
        try database.commit([.set("c/x", map(("until", time(60))))])
        try database.setCatalog([], [try Self.policy()])
        #expect(database.catalog.changes.isEmpty && database.catalog.ownDefinitions.isEmpty)
        let view = try database.view()
        #expect(try view.snapshot.count(.entries, KeyRange(lower: [], upper: nil), limit: .max) == 2)
    }

    @Test func whoMovesTheTimeOnSavesTheDocument() throws {
        try database.setCatalog([], [try Self.policy()])
        for number in 0..<200 {
            let path = "c/\(number)"
            try database.commit([.set(path, map(("until", time(-1))))])
            // Queued behind each other in either order.
            let moved = Promise<Result<CommitOutcome, Status>>()
            let promise = Promise<Result<Database.ExpiryStep, Status>>()
            let exists = Precondition.exists(true)
            if number.isMultiple(of: 2) {
                database.commit([.set(path, map(("until", time(60))), exists)]) { moved.give($0) }
                database.deleteExpired { promise.give($0) }
            } else {
                database.deleteExpired { promise.give($0) }
                database.commit([.set(path, map(("until", time(60))), exists)]) { moved.give($0) }
            }
            let deleted = try promise.wait().get().deletedCount
            switch moved.wait() {
            case .success: #expect(try deleted == 0 && exist(path) == [true])
            case .failure(let status):
                #expect(status.code == .notFound)
                #expect(try deleted == 1 && exist(path) == [false])
            }
        }
        #expect(try isSound)
    }

    @Test func aPolicyThatEndsMeanwhileDeletesNothingMore() throws {
        try database.setCatalog([], [try Self.policy()])
        try database.commit([.set("c/x", map(("until", time(-1))))])
        // Its end is queued before the search, and made between that and the deletions.
        store.hold()
        let ended = Promise<Result<Void, Status>>()
        database.setCatalog(definitions: [], overrides: []) { ended.give($0) }
        store.waitForWriter()
        let promise = Promise<Result<Database.ExpiryStep, Status>>()
        database.deleteExpired { promise.give($0) }
        store.release()
        #expect(try promise.wait().get().deletedCount == 0)
        try ended.wait().get()
        #expect(try exist("c/x") == [true])
        #expect(database.hasExpiryPolicies == false)
    }

    @Test func eachPolicyHasItsShareOfAStep() throws {
        try database.setCatalog([], [try Self.policy(), try Self.policy(of: "d")])
        for number in 0..<30 {
            try database.commit([.set("c/\(number)", map(("until", time(-9))))])
            try database.commit([.set("d/\(number)", map(("until", time(-1))))])
        }
        #expect(try step(database, limit: 10).get() == .init(deletedCount: 10, isMore: true))
        #expect(database.expiryOverdueSeconds == 9)
        #expect(try step(database, limit: 100).get().deletedCount == 50)
    }

    /// A step deletes as much of one collection group when there are many policies.
    @Test func policiesWithoutExpiredDocumentsLeaveTheirShares() throws {
        try database.setCatalog([], try (0..<100).map { number in try Self.policy(of: "g\(number)") })
        for group in ["g7", "g8"] {
            for number in 0..<60 { try database.commit([.set("\(group)/\(number)", map(("until", time(-1))))]) }
        }
        #expect(try step(database, limit: 100).get() == .init(deletedCount: 100, isMore: true))
        #expect(try step(database, limit: 100).get() == .init(deletedCount: 20))
    }

    /// What can't be deleted is passed over until the next round.
    @Test func lockedAndDamagedDocumentsKeepNoOthers() throws {
        try database.setCatalog([], [try Self.policy()])
        for number in 0..<6 {
            try database.commit([.set("c/\(number)", map(("until", time(Double(number) - 10))))])
        }
        let damaged = Promise<Result<Void, Status>>()
        database.perform(
            { transaction throws(Status) in
                for number in 0..<3 {
                    try transaction.put(.documents, DocumentKey.encode(ResourcePath(["c", "\(number)"])), [1])
                }
            }, completion: { damaged.give($0) })
        try damaged.wait().get()
        #expect(try step(database, limit: 3).get() == .init(deletedCount: 0, isMore: true))
        #expect(try step(database, limit: 3).get() == .init(deletedCount: 3, isMore: true))
        #expect(try step(database, limit: 3).get() == .init())
        #expect(try step(database, limit: 3).get() == .init(deletedCount: 0, isMore: true))
    }

    @Test func listenersAndTriggersHearOfIt() throws {
        let recorder = RecordingRecorder()
        database.setRecorder(recorder)
        let seen = Mutex(0)
        database.observe { set in
            let deletions = set.changes.count { $0.after == nil }
            seen.withLock { $0 += deletions }
        }
        try database.setCatalog([], [try Self.policy()])
        try database.commit([.set("c/x", map(("until", time(-1))))])
        #expect(try step(database).get().deletedCount == 1)
        try database.commit([.delete("c/none")])
        #expect(seen.withLock { $0 } == 1 && recorder.recorded == 2)
    }

    @Test func aDiskThatFailsIsReportedAndTheStepIsRepeated() throws {
        try database.setCatalog([], [try Self.policy()])
        try database.commit([.set("c/x", map(("until", time(-1))))])
        store.fail(at: 1)
        #expect(throws: Status.self) { try step(database).get() }
        store.fail(at: nil)
        #expect(try step(database).get().deletedCount == 1)
        #expect(try isSound)
    }

    @Test func policiesAreKeptWithTheirOffsets() throws {
        let overrides = [try Self.policy(offset: 7), try Self.policy("a.b", of: "d", indexes: [])]
        try database.setCatalog([], overrides)
        let again = try CatalogStore.load(from: try store.snapshot())
        #expect(again.overrides == overrides && again.expiryPolicies.map(\.policy.offsetSeconds) == [7, 0])
    }
}
