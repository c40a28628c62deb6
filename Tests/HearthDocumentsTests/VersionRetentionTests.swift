import HearthConcurrency
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments
@testable import HearthEngine

/// For how long old versions are kept and can be read, with point-in-time recovery and without.
@Suite struct VersionRetentionTests {
    private static let hour = 3600.0
    private static let day = 24 * hour
    /// A whole minute.
    private let clock = StoppedClock(microseconds: 1_700_000_040_000_000)
    private let store = MemoryStore()

    private var now: Int64 { clock.now().microseconds }

    private func open() throws -> Database { try Database(name: testDatabaseName, store: store, clock: clock) }

    private func recover(_ database: Database, _ isOn: Bool) throws {
        let promise = Promise<Result<MapValue, Status>>()
        database.changeNote(
            "n", recovery: isOn, { note throws(Status) in note ?? MapValue() }, completion: { promise.give($0) })
        _ = try promise.wait().get()
    }

    private func set(_ database: Database, _ number: Int64) throws {
        try database.commit([.set("c/d", map(("n", .integer(number))))])
    }

    private func number(_ database: Database, _ time: Int64) throws(Status) -> Value? {
        let path = resource("c/d").path
        let view = try database.view(.readTime(Timestamp(microseconds: time)), [.document(path)])
        return try view.document(path).map { document throws(Status) in try FieldsCodec.decode(document.fields) }?["n"]
    }

    private func code(_ database: Database, _ time: Int64) -> Status.Code? {
        statusOf { () throws(Status) in _ = try number(database, time) }?.code
    }

    @Test func withoutItAnHourIsKept() throws {
        let database = try open()
        defer { database.close() }
        try set(database, 1)
        let first = now
        clock.advance(seconds: Self.hour)
        try set(database, 2)
        #expect(try number(database, first) == .integer(1))
        #expect(
            try database.versionRetention()
                == VersionRetention(
                    seconds: 3600, earliest: first, beginning: first, isPointInTimeRecovery: false))
        clock.advance(seconds: 60)
        #expect(code(database, first) == .failedPrecondition)
    }

    /// Others wait for a step of the deletion of old versions, which takes the longer the larger they are.
    @Test func aStepOfTheDeletionOfOldVersionsEndsInTime() throws {
        let clock = MovingClock()
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: clock)
        defer { database.close() }
        func known() throws -> Int {
            let snapshot = try database.store.snapshot()
            defer { snapshot.close() }
            return try snapshot.count(.feed, KeyRange(lower: [], upper: nil), limit: .max)
        }
        for number in 0..<10 { try database.commit([.set("c/x", map(("n", .integer(Int64(number)))))]) }
        clock.advance(seconds: 2 * 3600)
        let step = Promise<Result<Bool, Status>>()
        database.collectGarbage { step.give($0) }
        #expect(try step.wait().get() && known() == 9)
        try database.collectAllGarbage()
        #expect(try known() == 0)
    }

    /// Moves with each look at it.
    private final class MovingClock: Clock {
        private let stopped = StoppedClock()

        func now() -> Timestamp { stopped.now() }

        func monotonicNanoseconds() -> UInt64 {
            stopped.advance(seconds: 0.03)
            return stopped.monotonicNanoseconds()
        }

        func advance(seconds: Double) { stopped.advance(seconds: seconds) }
    }

    @Test func fromItsSwitchingOnTheWindowGrowsToSevenDays() throws {
        var database = try open()
        try set(database, 0)
        clock.advance(seconds: 2 * Self.hour)
        try database.collectAllGarbage()
        let switched = now
        try recover(database, true)
        #expect(try database.versionRetention().earliest == switched - 3_600_000_000)
        // Every hour a commit, for eight days; the database is closed and opened meanwhile, and old versions are deleted.
        for hour in 1...(8 * 24) {
            clock.advance(seconds: Self.hour)
            try set(database, Int64(hour))
            if hour % 20 == 0 {
                database = try open()
            }
            if hour % 7 == 0 { try database.collectAllGarbage() }
            let retention = try database.versionRetention()
            let kept = max(switched - 3_600_000_000, now - 7 * 86_400_000_000)
            #expect(retention.seconds == 604_800 && retention.earliest == kept && retention.isPointInTimeRecovery)
            #expect(try number(database, kept + (hour < 168 ? 3_600_000_000 : 0)) != nil)
        }
        defer { database.close() }
        let last = Int64(8 * 24)
        for hours in stride(from: Int64(1), through: 168, by: 13) {
            let time = now - hours * 3_600_000_000
            #expect(try number(database, time) == .integer(last - hours))
            #expect(try number(database, time + 60_000_000) == .integer(last - hours))
            #expect(try number(database, time - 60_000_000) == .integer(last - hours - 1))
        }
        // Only whole minutes, beyond the hour; and nothing beyond seven days.
        #expect(try number(database, now - 3_599_999_999) == .integer(last - 1))
        #expect(code(database, now - 3_600_000_001) == .failedPrecondition)
        #expect(code(database, now - 86_400_000_000 + 1_000_000) == .failedPrecondition)
        #expect(code(database, now - 604_860_000_000) == .failedPrecondition)
        #expect(try IntegrityCheck.run(store).problems == [])
        #expect(try store.snapshot().count(.feed, KeyRange(lower: [], upper: nil), limit: .max) < 175)
    }

    @Test func transactionsAndQueriesReadTheSame() throws {
        let database = try open()
        defer { database.close() }
        try recover(database, true)
        try set(database, 1)
        clock.advance(seconds: 120)
        let then = now
        clock.advance(seconds: 2 * Self.day)
        try database.commit([.delete("c/d")])
        let id = try database.begin(.readOnly(readTime: Timestamp(microseconds: then)))
        let query = Query(parent: resource(""), scope: .collection("c"))
        #expect(try database.view(.transaction(id), [.document(resource("c/d").path)]).names(query) == ["c/d"])
        #expect(try database.view(.readTime(Timestamp(microseconds: then))).names(query) == ["c/d"])
        #expect(try database.view().names(query) == [])
        #expect(
            statusOf { () throws(Status) in
                _ = try database.begin(.readOnly(readTime: Timestamp(microseconds: then + 1)))
            }?.code == .failedPrecondition)
    }

    @Test func whatWasSwitchedOffDoesNotComeBack() throws {
        var database = try open()
        try recover(database, true)
        try set(database, 1)
        clock.advance(seconds: Self.day)
        try set(database, 2)
        #expect(try number(database, now - 43_200_000_000) == .integer(1))
        try recover(database, false)
        #expect(
            try database.versionRetention()
                == VersionRetention(
                    seconds: 3600, earliest: now - 3_600_000_000, beginning: now - 86_400_000_000,
                    isPointInTimeRecovery: false))
        #expect(code(database, now - 43_200_000_000) == .failedPrecondition)
        try recover(database, true)
        try recover(database, true)
        #expect(try database.versionRetention().earliest == now - 3_600_000_000)
        #expect(code(database, now - 43_200_000_000) == .failedPrecondition)
        try recover(database, false)
        clock.advance(seconds: 2 * Self.hour)
        try set(database, 3)
        try database.collectAllGarbage()
        #expect(try store.snapshot().count(.feed, KeyRange(lower: [], upper: nil), limit: .max) == 1)
        database = try open()
        defer { database.close() }
        #expect(try !database.versionRetention().isPointInTimeRecovery)
    }

    /// Whichever way is shorter: from the present, or from the time.
    @Test func aDocumentThatChangesOftenIsFoundSoon() throws {
        let database = try open()
        defer { database.close() }
        var times: [Int64] = []
        for number in 0..<800 {
            try set(database, Int64(number))
            times.append(database.newestCommit.version)
            for other in 0..<3 where number < 20 { try database.commit([.set("d/\(other)", map())]) }
        }
        let key = DocumentKey.encode(resource("c/d").path)
        for number in [0, 1, 10, 300, 790, 799] {
            let view = try database.view(.readTime(Timestamp(microseconds: times[number])))
            view.budget = FeedBudget(records: .max, steps: 200) { () throws(Status) in }
            let fields = try FieldsCodec.decode(try #require(try view.document(key: key)).fields)
            #expect(fields["n"] == .integer(Int64(number)))
        }
        // One that has no change soon after, and many later: as far as the budget goes.
        let view = try database.view(.readTime(Timestamp(microseconds: times[0] - 1)))
        #expect(try view.document(key: key) == nil)
        try database.commit([.set("e/x", map())])
        let then = database.newestCommit.version
        for number in 0..<1500 { try database.commit([.set("d/1", map(("n", .integer(Int64(number)))))]) }
        for number in 0..<300 { try database.commit([.set("e/x", map(("n", .integer(Int64(number)))))]) }
        let far = try database.view(.readTime(Timestamp(microseconds: then)))
        let other = DocumentKey.encode(resource("e/x").path)
        far.budget = FeedBudget(records: .max, steps: 200) { () throws(Status) in }
        #expect(statusOf { () throws(Status) in _ = try far.document(key: other) } == WorkMeter.isHeavier)
        far.budget = nil
        #expect(try far.document(key: other)?.updateVersion == then)
    }

    /// What was cleared can't be read, however long it would be kept.
    @Test func aClearedDatabaseBeginsAnew() throws {
        let database = try open()
        defer { database.close() }
        try recover(database, true)
        try set(database, 1)
        clock.advance(seconds: Self.day)
        try database.clear()
        let cleared = database.newestCommit.version
        #expect(try database.versionRetention().earliest == cleared)
        clock.advance(seconds: Self.day)
        #expect(try database.versionRetention().earliest == PointInTimeRecovery.roundedUp(cleared))
        #expect(code(database, cleared - 60_000_000) == .failedPrecondition)
    }
}
