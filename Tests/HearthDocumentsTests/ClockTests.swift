@testable import HearthConcurrency
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The effects of a wrong clock.
@Suite struct ClockTests {
    let source = StoppedClock()
    let steady: SteadyClock

    init() {
        let source = source
        steady = SteadyClock(source) { source.monotonicNanoseconds() }
    }

    private static let year: Int64 = 365 * 86_400 * 1_000_000
    private static let hour: Int64 = 3_600_000_000

    /// Lets time pass like the server's loop.
    @discardableResult
    private func pass(seconds: Int) -> [SteadyClock.Event] {
        var events: [SteadyClock.Event] = []
        for _ in 0..<(seconds * 2) {
            source.advance(seconds: 0.5)
            if let event = steady.tick() { events.append(event) }
        }
        return events
    }

    // MARK: The steady clock

    @Test func correctionsAreFollowedAtOnce() {
        for _ in 0..<100 {
            source.jump(microseconds: 300_000)
            #expect(pass(seconds: 1) == [])
            #expect(steady.now() == source.now())
        }
    }

    @Test(arguments: [10 * year, -10 * year, hour / 2, -hour / 2, 30 * hour])
    func aStepIsNotFollowedAtOnceAndReportedOnce(_ step: Int64) {
        let before = steady.now().microseconds
        source.jump(microseconds: step)
        #expect(abs(steady.now().microseconds - before) < 10)
        #expect(pass(seconds: 30) == [.stepped(microseconds: step)])
        #expect(abs(steady.now().microseconds - before - 30_000_000) < 10)
        source.jump(microseconds: -step)
        #expect(pass(seconds: 30) == [.returned])
        #expect(steady.now() == source.now())
    }

    @Test(arguments: [(hour / 2, 70), (-hour / 2, 70), (30 * hour, 610), (-10 * year, 610)])
    func aPermanentStepIsFollowed(_ step: Int64, _ seconds: Int) {
        source.jump(microseconds: step)
        #expect(pass(seconds: seconds) == [.stepped(microseconds: step), .followed(microseconds: step)])
        #expect(steady.now() == source.now())
    }

    @Test func aStepFarAheadIsNeverFollowed() {
        source.jump(microseconds: 10 * Self.year)
        #expect(pass(seconds: 3000) == [.stepped(microseconds: 10 * Self.year)])
        #expect(source.now().microseconds - steady.now().microseconds == 10 * Self.year)
    }

    @Test func aClockThatWasYearsBehindIsFollowedToThePresent() {
        source.jump(microseconds: -10 * Self.year)
        pass(seconds: 700)
        source.jump(microseconds: 10 * Self.year)
        #expect(
            pass(seconds: 700) == [
                .stepped(microseconds: 10 * Self.year), .followed(microseconds: 10 * Self.year),
            ])
        #expect(steady.now() == source.now())
    }

    // MARK: Databases

    private func fields(_ number: Int64) -> Write { .set("c/d", map(("n", .integer(number)))) }

    @Test(arguments: [10 * year, -10 * year, 5 * hour, -5 * hour])
    func aStepWhileServingHasNoEffect(_ step: Int64) throws {
        let store = MemoryStore()
        let database = try Database(name: testDatabaseName, store: store, clock: steady)
        try database.commit([fields(1)])
        let earlier = try database.view().readTime
        let transaction = try database.beginTransaction()
        #expect(try database.fields("c/d", in: transaction) == map(("n", .integer(1))))
        source.jump(microseconds: step)
        pass(seconds: 1)
        database.tick()
        #expect(try database.fields("c/d", in: transaction) == map(("n", .integer(1))))
        try database.commit([fields(2)], in: transaction)
        #expect(try database.view(.readTime(earlier)).document(resource("c/d").path) != nil)
        #expect(try database.pastView(at: earlier).document(resource("c/d").path) != nil)
        try database.collectAllGarbage()
        #expect(try database.pastView(at: earlier).document(resource("c/d").path) != nil)
        source.jump(microseconds: -step)
        pass(seconds: 1)
        let outcome = try database.commit([fields(3)])
        #expect(abs(outcome.commitTime.microseconds - source.now().microseconds) < 1_000_000)
    }

    /// The database's own bounds also hold under a clock that steps.
    @Test(arguments: [10 * year, -10 * year]) func aRawStepFailsNoReadThatGoesOn(_ step: Int64) throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: source)
        try database.commit([fields(1)])
        let earlier = try database.view().readTime
        source.jump(microseconds: step)
        try database.commit([fields(2)])
        try database.collectAllGarbage()
        let past = try database.pastView(at: earlier)
        #expect(
            try past.document(resource("c/d").path).map { try FieldsCodec.decode($0.fields) } == map(("n", .integer(1)))
        )
        #expect(try database.fields("c/d") == map(("n", .integer(2))))
    }

    /// A store whose commits were made under a clock that was this many years ahead.
    private func storeOfTheFuture(_ step: Int64) throws -> MemoryStore {
        let store = MemoryStore()
        source.jump(microseconds: step)
        let database = try Database(name: testDatabaseName, store: store, clock: source)
        try database.commit([fields(1)])
        database.drain()
        source.jump(microseconds: -step)
        return store
    }

    @Test func commitsOfTheFutureAreNoticedAtTheOpening() throws {
        let store = try storeOfTheFuture(10 * Self.year)
        let status = statusOf { () throws(Status) in
            _ = try Database(name: testDatabaseName, store: store, clock: source, allowsClockSkew: false)
        }
        #expect(status?.code == .failedPrecondition)
        #expect(status?.message.contains("--allow-clock-skew") == true)
        let minute = try storeOfTheFuture(60_000_000)
        let slight = try Database(name: testDatabaseName, store: minute, clock: source, allowsClockSkew: false)
        #expect(slight.clockSkewSeconds == 60)
        let none = try Database(name: testDatabaseName, store: MemoryStore(), clock: source, allowsClockSkew: false)
        #expect(none.clockSkewSeconds == nil)
    }

    @Test func aDatabaseOfTheFutureServesThePresentAndForgetsItsHistory() throws {
        let store = try storeOfTheFuture(10 * Self.year)
        let database = try Database(name: testDatabaseName, store: store, clock: source, allowsClockSkew: true)
        // The client's idea of the present time.
        let view = try database.view(.readTime(source.now()))
        #expect(try view.document(resource("c/d").path) != nil)
        for number in 0..<100 {
            try database.commit([fields(Int64(number))])
            source.advance(seconds: 60)
            try database.collectAllGarbage()
        }
        let report = try IntegrityCheck.run(database)
        #expect(report.isSound)
        #expect(report.feedRecords < 70)
        source.advance(seconds: 4000)
        try database.collectAllGarbage()
        #expect(try IntegrityCheck.run(database).feedRecords == 0)
    }
}
