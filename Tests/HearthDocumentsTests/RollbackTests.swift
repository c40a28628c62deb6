import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments
@testable import HearthEngine

/// A store that is taken back to a commit is what it was then.
@Suite struct RollbackTests {
    private typealias Contents = [Keyspace: [[UInt8]: [UInt8]]]

    private static func contents(_ store: MemoryStore) throws -> Contents {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var contents: Contents = [:]
        for keyspace in Keyspace.allCases {
            let cursor = try snapshot.scan(keyspace, KeyRange(lower: [], upper: nil), reverse: false, values: true)
            while try cursor.next() { contents[keyspace, default: [:]][cursor.key] = cursor.value }
        }
        return contents
    }

    private static func store(_ contents: Contents) throws -> MemoryStore {
        let store = MemoryStore()
        try store.write { transaction throws(Status) in
            for (keyspace, records) in contents {
                for (key, value) in records { try transaction.put(keyspace, key, value) }
            }
        }
        return store
    }

    /// The answers of Write streams are compared otherwise: older ones of a stream may be gone.
    private static func withoutStreams(_ contents: Contents) -> Contents {
        var contents = contents
        contents[.meta] = contents[.meta]?.filter { !$0.key.starts(with: StreamAnswers.prefix) }
        for (keyspace, records) in contents where records.isEmpty { contents[keyspace] = nil }
        return contents
    }

    private static func commit(
        _ database: Database, _ writes: [Write], once: OnceID? = nil, at position: StreamPosition? = nil
    ) -> Result<CommitOutcome, Status> {
        let promise = Promise<Result<CommitOutcome, Status>>()
        database.commit(writes, requester: .server, streamPosition: position, once: once) { promise.give($0) }
        return promise.wait()
    }

    private static func policy() throws(Status) -> FieldOverride {
        FieldOverride(
            collectionID: "c", path: FieldPath("t"), indexes: [], timeToLive: .init(offsetSeconds: 0))
    }

    /// A random history, of commits of all kinds, with composite indexes, exemptions, expiry, a ledger, ids and streams.
    private struct History {
        let clock = StoppedClock()
        let store = MemoryStore()
        let database: Database
        var states: [(version: Int64, contents: Contents)] = []
        private var writer: RandomWriter
        private var naive: NaiveState = [:]
        private var number: UInt64 = 0

        init(seed: UInt64) throws {
            writer = RandomWriter(seed)
            database = try Database(name: testDatabaseName, store: store, clock: clock)
            try database.setCatalog(writer.definitions(), writer.overrides() + [try policy()])
            let listed = Promise<Result<Bool, Status>>()
            database.deleteOldLedgerDocuments(of: "_once", limit: 10) { listed.give($0) }
            #expect(try !listed.wait().get())
            states.append((0, try RollbackTests.contents(store)))
        }

        mutating func add(_ count: Int) throws {
            for round in 0..<count {
                clock.advance(seconds: Double(writer.random.below(3)) * 0.7)
                var writes = writer.writes(on: naive)
                let next = Result { () throws(Status) in
                    try NaiveCommit(writes, on: naive, requestTime: clock.now())
                }
                let path = "_once/\(writer.random.below(4))"
                if writer.random.chance(40) {
                    writes.append(writer.random.chance(60) ? .set(path, map()) : .delete(path))
                }
                let once = writer.random.chance(30) ? try OnceID("id\(states.count).\(round)", called: "id") : nil
                var position: StreamPosition?
                if once == nil, writer.random.chance(30) {
                    let stream = [UInt8](repeating: 1, count: StreamPosition.idBytes)
                    position = StreamPosition(stream: stream, owner: [1], number: number + 1, fingerprint: number)
                }
                guard case .success(let outcome) = commit(database, writes, once: once, at: position) else { continue }
                if position != nil { number += 1 }
                let version = outcome.commitTime.microseconds
                naive = try next.get().state(version: version)
                states.append((version, try RollbackTests.contents(store)))
            }
        }
    }

    @Test func eachCommitOfARandomHistoryIsComeBackTo() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        for _ in 0..<(2 * TestRun.effort) {
            let seed = TestRun.givenSeed ?? random.next()
            var history = try History(seed: seed)
            defer { history.database.close() }
            try history.add(60)
            let newest = try Self.contents(history.store)
            for (version, state) in history.states {
                let store = try Self.store(newest)
                // Between two commits is the state of the first one.
                let time = version + Int64(random.below(2))
                let isCommit = history.states.contains { $0.version == time }
                let report = try Rollback.run(store, to: isCommit ? time : version, stepChangesMax: 1 + random.below(9))
                let expected = isCommit ? try #require(history.states.last { $0.version == time }).contents : state
                let found = try Self.contents(store)
                #expect(Self.withoutStreams(found) == Self.withoutStreams(expected), "seed \(seed), at \(time)")
                #expect(report.undone == (newest[.feed]?.count ?? 0) - (expected[.feed]?.count ?? 0))
                #expect(try IntegrityCheck.run(store).problems == [], "seed \(seed), at \(time)")
                // Answers to commits of the stream that are left.
                for (key, value) in found[.meta] ?? [:] where key.starts(with: StreamAnswers.prefix) {
                    #expect(expected[.meta]?[key] == value, "seed \(seed), at \(time)")
                }
            }
            if TestRun.givenSeed != nil { break }
        }
    }

    /// A part of the history has been deleted: what the rest reaches is the same.
    @Test func aShortenedHistoryIsComeBackToAsFarAsItGoes() throws {
        let seed = TestRun.seed()
        var history = try History(seed: seed)
        defer { history.database.close() }
        try history.add(40)
        history.clock.advance(seconds: Double(Limits.retentionSeconds) + 30)
        try history.add(15)
        history.clock.advance(seconds: 60)
        try history.add(15)
        try history.database.collectAllGarbage(recordsMax: 7)
        let newest = try Self.contents(history.store)
        let earliest = try Rollback.coverage(of: history.store).earliest
        #expect(earliest > 0)
        for (version, state) in history.states {
            let store = try Self.store(newest)
            if version < earliest {
                #expect(throws: Status.self) { try Rollback.run(store, to: version) }
                #expect(try Self.contents(store) == newest)
                continue
            }
            _ = try Rollback.run(store, to: version)
            let found = try Self.contents(store)
            #expect(found[.meta]?[Database.versionKey] == state[.meta]?[Database.versionKey], "seed \(seed)")
            #expect(found[.documents] == state[.documents] && found[.entries] == state[.entries], "seed \(seed)")
            #expect(try IntegrityCheck.run(store).problems == [], "seed \(seed), at \(version)")
        }
    }

    /// What was undone may be made again, and is answered anew.
    @Test func theDatabaseGoesOn() throws {
        let clock = StoppedClock()
        let store = MemoryStore()
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        let stream = [UInt8](repeating: 1, count: StreamPosition.idBytes)
        func set(_ number: Int64) -> [Write] { [.set("c/d", map(("n", .integer(number))))] }
        var times: [Int64] = []
        for number in 1...20 {
            clock.advance(seconds: 1)
            let position = StreamPosition(
                stream: stream, owner: [1], number: UInt64(number), fingerprint: UInt64(number))
            let outcome = try Self.commit(database, set(Int64(number)), at: position).get()
            times.append(outcome.commitTime.microseconds)
        }
        let id = try OnceID("one", called: "id")
        _ = try Self.commit(database, set(21), once: id).get()
        _ = try Rollback.run(store, to: times[9])
        let again = try Database(name: testDatabaseName, store: store, clock: clock)
        defer { again.close() }
        #expect(try again.fields("c/d")?["n"] == .integer(10))
        #expect(try again.canResume(stream: stream, owner: [1], after: 10, openedAt: 0))
        // The tenth is known, the eleventh is made again, and no later one may be before it.
        func commit(_ number: UInt64) -> Result<CommitOutcome, Status> {
            let position = StreamPosition(stream: stream, owner: [1], number: number, fingerprint: number)
            return Self.commit(again, set(Int64(100 + number)), at: position)
        }
        #expect(try commit(10).get().commitTime.microseconds == times[9])
        #expect(throws: Status.self) { try commit(12).get() }
        #expect(try commit(11).get().commitTime.microseconds > times[19])
        _ = try Self.commit(again, set(21), once: id).get()
        #expect(try again.fields("c/d")?["n"] == .integer(21))
        #expect(try IntegrityCheck.run(store).problems == [])
    }

    @Test func beforeTheFirstCommitADatabaseIsEmptyAndItsHistoryAnother() throws {
        let store = MemoryStore()
        let clock = StoppedClock()
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        try database.commit([.set("c/d", map())])
        let incarnation = database.incarnation
        let report = try Rollback.run(store, to: clock.now().microseconds - 1)
        #expect(report == Rollback.Report(undone: 1, version: 0))
        #expect(try Self.contents(store).values.allSatisfy(\.isEmpty))
        let again = try Database(name: testDatabaseName, store: store, clock: clock)
        defer { again.close() }
        try again.commit([.set("c/d", map())])
        #expect(again.incarnation != incarnation)
    }

    @Test func aHistoryThatContradictsTheDocumentsIsFound() throws {
        let store = MemoryStore()
        let database = try Database(name: testDatabaseName, store: store, clock: StoppedClock())
        try database.commit([.set("c/d", map())])
        try database.commit([.set("c/d", map(("n", .integer(1))))])
        let key = DocumentKey.encode(resource("c/d").path)
        try store.write { transaction throws(Status) in try transaction.delete(.documents, key) }
        #expect(statusOf { () throws(Status) in _ = try Rollback.run(store, to: 1) }?.code == .dataLoss)
    }
}
