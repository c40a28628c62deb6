import HearthModel
import Testing

@testable import HearthStorage

/// Answers that are kept for Write streams which can be resumed: how many, and for how long.
@Suite struct StreamAnswerTests {
    private static let owner: [UInt8] = [1]
    private let clock = ManualClock()
    private let store = MemoryStore()

    private func commit(_ database: Database, _ stream: UInt8, _ number: UInt64) async throws {
        let position = StreamPosition(
            stream: [UInt8](repeating: stream, count: StreamPosition.idBytes), owner: Self.owner, number: number,
            fingerprint: number)
        let writes = [Write.set("c/d\(stream)", map(("n", .integer(Int64(number)))))]
        _ = try await withCheckedThrowingContinuation { continuation in
            database.commit(writes, requester: .server, streamPosition: position) { continuation.resume(with: $0) }
        }
    }

    private func records() throws -> Int {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: StreamAnswers.prefix), reverse: false, values: false)
        defer { cursor.close() }
        var count = 0
        while try cursor.next() { count += 1 }
        return count
    }

    /// One pass of the search, in steps of two records.
    private func sweep(_ database: Database) async throws {
        while try await withCheckedThrowingContinuation({ continuation in
            database.forgetStreamAnswers(recordsMax: 2) { continuation.resume(with: $0) }
        }) {}
    }

    @Test func aStreamKeepsItsLatestAnswers() async throws {
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        for number in 1...40 { try await commit(database, 1, UInt64(number)) }
        #expect(try records() == Limits.streamAnswersMax)
    }

    @Test func answersExpireByTheTimeThatHasPassed() async throws {
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        for number in 1...5 { try await commit(database, 1, UInt64(number)) }
        try await sweep(database)
        #expect(try records() == 5)
        clock.advance(seconds: Double(Limits.streamAnswersSeconds - 60))
        for number in 1...3 { try await commit(database, 2, UInt64(number)) }
        try await sweep(database)
        #expect(try records() == 8)
        clock.advance(seconds: 2 * 3600)
        try await sweep(database)
        #expect(try records() == 3)
        // Whoever goes on with the expired stream begins anew.
        let stream = [UInt8](repeating: 1, count: StreamPosition.idBytes)
        #expect(try !database.canResume(stream: stream, owner: Self.owner, after: 5, openedAt: 0))
    }

    /// A client that opens streams without end takes bounded room beyond what an hour brings.
    @Test func theOldestAnswersGoWhenAllAreTooMany() throws {
        let sweep = StreamAnswersSweep(clock: clock, bytesMax: 250)
        let hour: Int64 = 3_600_000_000
        let now = clock.now().microseconds / hour
        var kept = StreamAnswersSweep.Ages()
        for age in 0..<5 { kept.add(100, at: (now - Int64(age)) * hour) }
        let first = try #require(sweep.next())
        #expect(first.before < (now - 5) * hour)
        sweep.done(through: nil, kept: kept)
        #expect(sweep.next() == nil)
        clock.advance(seconds: 3601)
        #expect(try #require(sweep.next()).before == (now - 1) * hour)
        // In steps: the limit is that of the pass.
        sweep.done(through: [1], kept: StreamAnswersSweep.Ages())
        #expect(try #require(sweep.next()).before == (now - 1) * hour)
        sweep.done(through: nil, kept: StreamAnswersSweep.Ages())
        clock.advance(seconds: 3601)
        #expect(try #require(sweep.next()).before < (now - 5) * hour)
    }
}
