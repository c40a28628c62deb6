import HearthModel
import HearthTestSupport
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Resumable Write streams: which commits are made, which of their answers are stored, and for how long.
@Suite struct StreamAnswerTests {
    private static let owner: [UInt8] = [1]
    private let clock = StoppedClock()
    private let store = MemoryStore()

    private static func stream(_ number: UInt8) -> [UInt8] {
        [UInt8](repeating: number, count: StreamPosition.idBytes)
    }

    private func open() throws -> Database { try Database(name: testDatabaseName, store: store, clock: clock) }

    /// Commits a write that sets `n` of a document of the stream.
    @discardableResult
    private func commit(
        _ database: Database, _ stream: UInt8, _ number: UInt64, owner: [UInt8] = owner, fingerprint: UInt64? = nil
    ) async throws -> CommitOutcome {
        let position = StreamPosition(
            stream: Self.stream(stream), owner: owner, number: number, fingerprint: fingerprint ?? number)
        let writes = [Write.set("c/d\(stream)", map(("n", .integer(Int64(number)))))]
        return try await withCheckedThrowingContinuation { continuation in
            database.commit(writes, requester: .server, streamPosition: position) { continuation.resume(with: $0) }
        }
    }

    private func commit(_ database: Database, _ stream: UInt8, _ numbers: ClosedRange<UInt64>) async throws {
        for number in numbers { try await commit(database, stream, number) }
    }

    private func records() throws -> Int {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: StreamAnswers.prefix), reverse: false, values: false)
        defer { cursor.close() }
        var count = 0
        while try cursor.next() { if cursor.key != StreamAnswers.prefix { count += 1 } }
        return count
    }

    private func put(_ key: [UInt8], _ value: [UInt8]) throws {
        try store.write { transaction throws(Status) in try transaction.put(.meta, key, value) }
    }

    private func problems() throws -> [String] { try IntegrityCheck.run(store).problems }

    /// One pass of the search, in steps of two records.
    private func sweep(_ database: Database) async throws {
        while try await withCheckedThrowingContinuation({ continuation in
            database.deleteOldStreams(recordsMax: 2) { continuation.resume(with: $0) }
        }) {}
    }

    private func canResume(_ database: Database, _ stream: UInt8, after number: UInt64, openedAt: Int64 = 0) throws
        -> Bool
    {
        try database.canResume(stream: Self.stream(stream), owner: Self.owner, after: number, openedAt: openedAt)
    }

    private func code(_ body: () async throws -> Void) async -> Status.Code? {
        do {
            try await body()
            return nil
        } catch { return (error as? Status)?.code }
    }

    @Test func aRepetitionIsAnsweredAndNothingElseIsMade() async throws {
        let database = try open()
        let first = try await commit(database, 1, 1)
        try await commit(database, 1, 2...20)
        #expect(try records() == 1 + Limits.streamAnswersMax)
        let last = try await commit(database, 1, 20)
        #expect(last.commitTime.microseconds == database.newestVersion && first.commitTime < last.commitTime)
        // Another owner, another content, a gap, one that is no longer stored, a stream that does not exist.
        #expect(await code { try await commit(database, 1, 21, owner: [2]) } == .aborted)
        #expect(await code { try await commit(database, 1, 20, fingerprint: 7) } == .aborted)
        #expect(await code { try await commit(database, 1, 22) } == .aborted)
        #expect(await code { try await commit(database, 1, 4) } == .aborted)
        #expect(await code { try await commit(database, 2, 2) } == .aborted)
        #expect(database.newestVersion == last.commitTime.microseconds)
    }

    @Test func aStreamIsResumedWhileItsAnswersAreKept() async throws {
        let database = try open()
        try await commit(database, 1, 1...20)
        #expect(try canResume(database, 1, after: 20) && canResume(database, 1, after: 4))
        #expect(await code { _ = try canResume(database, 1, after: 3) } == .outOfRange)
        #expect(try !canResume(database, 1, after: 21))
        #expect(try canResume(database, 2, after: 0) && !canResume(database, 2, after: 1))
        #expect(
            try !database.canResume(stream: Self.stream(1), owner: [9], after: 20, openedAt: 0), "another's stream")
    }

    /// Damage costs the stream, and the check finds it.
    @Test func anUnreadableStreamIsNotResumed() async throws {
        let database = try open()
        try await commit(database, 1, 1...2)
        try await commit(database, 2, 1...2)
        #expect(try problems().isEmpty)
        try put(StreamAnswers.headKey(Self.stream(1)), [1])
        // Numbers and times that would overflow.
        for (stream, number, time) in [(UInt8(4), UInt64.max, Int64(1)), (5, 1, .max), (6, 1, -1)] {
            let head = StreamAnswers.Head(number: number, time: time, owner: Self.owner)
            try put(StreamAnswers.headKey(Self.stream(stream)), head.stored)
            #expect(try !canResume(database, stream, after: 1))
            #expect(await code { try await commit(database, stream, 2) } == .aborted)
        }
        let piece = StreamAnswers.headKey(Self.stream(2)) + [2, 0, 0, 0]
        try put(piece, Array("no answer".utf8))
        #expect(try !canResume(database, 1, after: 2))
        #expect(await code { try await commit(database, 1, 3) } == .aborted)
        #expect(await code { try await commit(database, 2, 2) } == .aborted)
        try put(StreamAnswers.headKey(Self.stream(3)) + [1], [1])
        #expect(try problems().count == 5)
        try await sweep(database)
        #expect(try records() == 3, "of the first stream and of what has no head nothing is left")
    }

    /// `meta` is searched by each read and commit, and must not have large rows.
    @Test func largeAnswersAreStoredInSmallPieces() async throws {
        let database = try open()
        let transforms = (0..<500).map {
            FieldTransform(path: FieldPath("f\($0)"), operation: .increment(.integer(Int64($0))))
        }
        var write = Write.set("c/d", map(("n", .integer(1))))
        write.transforms = transforms
        func commit(_ number: UInt64) async throws -> CommitOutcome {
            let position = StreamPosition(
                stream: Self.stream(1), owner: Self.owner, number: number, fingerprint: number)
            return try await withCheckedThrowingContinuation { [write] continuation in
                database.commit([write], requester: .server, streamPosition: position) { continuation.resume(with: $0) }
            }
        }
        let outcome = try await commit(1)
        let again = try await commit(1)
        #expect(again.commitTime == outcome.commitTime && again.results.count == 1)
        #expect(again.results.first?.transformResults == outcome.results.first?.transformResults)
        #expect(again.results.first?.transformResults.count == 500)
        let snapshot = try store.snapshot()
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: StreamAnswers.prefix), reverse: false, values: true)
        while try cursor.next() { #expect(cursor.key.count + cursor.value.count < 1000) }
        snapshot.close()
        // A shorter one in the same slot leaves nothing of it.
        let before = try records()
        for number in 2...17 { try await self.commit(database, 1, UInt64(number)) }
        #expect(before > 3)
        #expect(try records() == 1 + Limits.streamAnswersMax)
    }

    @Test func streamsExpireByElapsedTime() async throws {
        let database = try open()
        let opened = database.newestVersion
        try await commit(database, 1, 1...5)
        try await sweep(database)
        #expect(try records() == 6)
        clock.advance(seconds: Double(Limits.streamAnswersSeconds - 60))
        try await commit(database, 2, 1...3)
        try await sweep(database)
        #expect(try records() == 10)
        clock.advance(seconds: 2 * 3600)
        try await commit(database, 3, 1...1)
        try await sweep(database)
        #expect(try records() == 6)
        // Neither after an answer nor before the first one: it may have been made.
        #expect(try !canResume(database, 1, after: 5) && !canResume(database, 1, after: 0, openedAt: opened))
        #expect(try canResume(database, 9, after: 0, openedAt: database.newestVersion))
    }

    /// A clock that is ahead when the database is opened deletes nothing.
    @Test func aClockThatIsAheadDeletesNothing() async throws {
        try await commit(try open(), 1, 1...3)
        clock.jump(microseconds: 90 * 86_400 * 1_000_000)
        try await sweep(try open())
        #expect(try records() == 4)
    }

    @Test func oneStepAtATime() async throws {
        let sweep = StreamSweep(clock: clock)
        #expect(sweep.begin(newestVersion: 0)?.after == nil)
        #expect(sweep.begin(newestVersion: 0) == nil)
        sweep.end(through: [7], kept: StreamSweep.Ages())
        #expect(sweep.begin(newestVersion: 0)?.after == [7])
        sweep.fail()
        #expect(sweep.begin(newestVersion: 0)?.after == [7])
        sweep.end(through: nil, kept: StreamSweep.Ages())
        #expect(sweep.begin(newestVersion: 0) == nil)
        clock.advance(seconds: 3601)
        #expect(sweep.begin(newestVersion: 0) != nil)
    }

    /// A client that opens streams without end takes bounded space besides the streams of one hour, and others lose
    /// nothing by it.
    @Test func theOldestStreamsOfTheLargestOwnerAreDeletedWhenAllAreTooLarge() throws {
        let sweep = StreamSweep(clock: clock, bytesMax: 300)
        let hour: Int64 = 3_600_000_000
        let now = clock.now().microseconds / hour
        var kept = StreamSweep.Ages()
        for age in 0..<5 { kept.add(100, share: 1, at: (now - Int64(age)) * hour) }
        kept.add(60, share: 2, at: (now - 5) * hour)
        kept.add(20, share: 3, at: (now - 5) * hour)
        let first = try #require(sweep.begin(newestVersion: .max))
        #expect(first.before < (now - 5) * hour && first.beforeOfShare.isEmpty)
        sweep.end(through: nil, kept: kept)
        // At once, and then in an hour.
        #expect(try #require(sweep.begin(newestVersion: .max)).beforeOfShare == [1: (now - 1) * hour])
        sweep.end(through: nil, kept: StreamSweep.Ages())
        #expect(sweep.begin(newestVersion: .max) == nil)
    }

    @Test func sharesAreThoseOfOwners() async throws {
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        try await commit(database, 1, 1...3)
        let head = try #require(try store.snapshot().get(.meta, StreamAnswers.headKey(Self.stream(1))))
        let share = StreamSweep.Ages.share(of: Self.owner)
        let time = database.newestVersion
        #expect(StreamSweep.Step(before: time, beforeOfShare: [share: time + 1]).isOld(head))
        #expect(!StreamSweep.Step(before: time, beforeOfShare: [share &+ 1: time + 1]).isOld(head))
        #expect(StreamSweep.Step(before: time + 1).isOld(head) && StreamSweep.Step(before: .min).isOld(nil))
    }
}
