import Glibc
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Transactions of many threads over real concurrency; their history is replayed in the order of commit times.
@Suite struct SerializabilityTests {
    static let paths = (0..<6).map { ResourcePath(["r", "\($0)"]) }

    /// The reads and writes of a transaction. Each written value is unique, so that it identifies its writer.
    struct Event: Sendable {
        /// Values by document; nil for one that was missing.
        var reads: [ResourcePath: Int64?] = [:]
        /// The results of a query for values from `least` on.
        var range: (least: Int64, values: [Int64])?
        var writes: [ResourcePath: Int64?] = [:]
        var isTransaction: Bool
        var commitTime: Int64
        /// The version of the first commit that could be seen, at least.
        var startTime: Int64
    }

    @Test(arguments: [false, true]) func committedHistoriesAreSerial(_ withOverrunLeases: Bool) throws {
        let clock = StoppedClock()
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: clock)
        defer { database.close() }
        let seed = TestRun.seed()
        let events = Gathered<Event>()
        let failures = Gathered<Status>()
        let steps = 200 * TestRun.effort
        inThreads(6) { index in
            var client = SerialClient(
                database, SeededGenerator(seed: seed &+ UInt64(index)), index, withOverrunLeases ? clock : nil, events,
                failures)
            for _ in 0..<steps { client.step() }
        }
        let committed = events.values.sorted { $0.commitTime < $1.commitTime }
        expectSerial(committed, seed)
        let codes = Set(failures.values.map(\.code))
        #expect(codes.isSubset(of: [.aborted]), "seed \(seed): \(failures.values.filter { $0.code != .aborted })")
        #expect(committed.count { $0.isTransaction && !$0.writes.isEmpty } > steps / 2, "seed \(seed)")
        #expect(database.locks.isIdle)
        #expect(database.openTransactions == 0)
        #expect(try IntegrityCheck.run(database).isSound)
    }

    private func expectSerial(_ committed: [Event], _ seed: UInt64) {
        var states: [(time: Int64, values: [ResourcePath: Int64])] = [(0, [:])]
        for event in committed {
            let present = states[states.count - 1].values
            if !event.writes.isEmpty {
                // All its reads were still valid when it was committed.
                if let difference = difference(event, present) {
                    Issue.record("seed \(seed), commit at \(event.commitTime): \(difference)")
                }
            } else if !states.contains(where: { $0.time >= event.startTime && difference(event, $0.values) == nil })
                && difference(event, states.last { $0.time <= event.startTime }!.values) != nil
            {
                // Without writes it saw one state, some time after it began.
                Issue.record("seed \(seed): no state at or after \(event.startTime) shows \(event)")
            }
            var next = present
            for (path, value) in event.writes { next[path] = value }
            if !event.writes.isEmpty { states.append((event.commitTime, next)) }
        }
    }

    private func difference(_ event: Event, _ state: [ResourcePath: Int64]) -> String? {
        for (path, value) in event.reads where state[path] != value {
            return "\(path) was read as \(String(describing: value)) instead of \(String(describing: state[path]))"
        }
        guard let (least, values) = event.range else { return nil }
        let expected = state.values.filter { $0 >= least }.sorted()
        return values == expected ? nil : "values from \(least) on were \(values) instead of \(expected)"
    }
}

/// One thread's transactions.
struct SerialClient {
    private let database: Database
    private var random: SeededGenerator
    private let index: Int
    /// Moved now and then, so that leases expire; nil where they shouldn't.
    private let clock: StoppedClock?
    private var written: Int64 = 0
    private let events: Gathered<SerializabilityTests.Event>
    private let failures: Gathered<Status>

    init(
        _ database: Database, _ random: SeededGenerator, _ index: Int, _ clock: StoppedClock?,
        _ events: Gathered<SerializabilityTests.Event>, _ failures: Gathered<Status>
    ) {
        self.clock = clock
        self.database = database
        self.random = random
        self.index = index
        self.events = events
        self.failures = failures
    }

    mutating func step() {
        do throws(Status) {
            if random.chance(20) { try plainWrite() } else { try transaction() }
        } catch {
            failures.append(error)
        }
    }

    /// Lets others run, and time pass.
    private mutating func pause() {
        for _ in 0..<random.below(20) { sched_yield() }
        if let clock, random.chance(30) {
            clock.advance(seconds: 2)
            database.tick()
        }
    }

    private mutating func nextValue() -> Int64? {
        if random.chance(10) { return nil }
        written += 1
        return written * 16 + Int64(index)
    }

    private mutating func writes() -> [ResourcePath: Int64?] {
        var writes: [ResourcePath: Int64?] = [:]
        for _ in 0..<(1 + random.below(2)) {
            writes.updateValue(nextValue(), forKey: random.pick(SerializabilityTests.paths))
        }
        return writes
    }

    private func messages(_ writes: [ResourcePath: Int64?]) -> [Write] {
        writes.map { path, value in
            let name = ResourceName(database: testDatabaseName, path: path)
            guard let value else { return Write(document: name, operation: .delete) }
            return Write(document: name, operation: .update(fields: map(("n", .integer(value))), mask: nil))
        }
    }

    private mutating func plainWrite() throws(Status) {
        let start = try database.view().version
        let writes = writes()
        let outcome = try database.commit(messages(writes))
        events.append(
            SerializabilityTests.Event(
                writes: writes, isTransaction: false, commitTime: outcome.commitTime.microseconds, startTime: start))
    }

    private mutating func transaction() throws(Status) {
        let start = try database.view().version
        let id = try database.beginTransaction()
        var event = SerializabilityTests.Event(isTransaction: true, commitTime: 0, startTime: start)
        for _ in 0..<random.below(4) {
            if random.chance(25) {
                try readRange(&event, in: id)
            } else {
                try readDocuments(&event, in: id)
            }
            pause()
        }
        if random.chance(8) { return try database.rollback(id) }
        if random.chance(85) { event.writes = writes() }
        let outcome = try database.commit(messages(event.writes), in: id)
        event.commitTime = outcome.commitTime.microseconds
        events.append(event)
    }

    private mutating func readDocuments(
        _ event: inout SerializabilityTests.Event, in id: [UInt8]
    ) throws(Status) {
        let paths = Array(SerializabilityTests.paths.shuffled(using: &random).prefix(1 + random.below(2)))
        let view = try database.view(.transaction(id), paths.map { .document($0) })
        for path in paths {
            let value = try view.document(path).map { document throws(Status) in try Self.value(document) }
            if let earlier = event.reads[path], earlier != value {
                Issue.record("two reads of \(path) in one transaction gave \(earlier as Any) and \(value as Any)")
            }
            event.reads.updateValue(value, forKey: path)
        }
    }

    private mutating func readRange(_ event: inout SerializabilityTests.Event, in id: [UInt8]) throws(Status) {
        let least = written * 8
        let query = try NormalizedQuery(
            Query(
                parent: ResourceName(database: testDatabaseName, path: ResourcePath()), scope: .collection("r"),
                filter: .field(FieldPath("n"), .greaterThanOrEqual, .integer(least))))
        let view = try database.view(.transaction(id), [.query(query)])
        var values: [Int64] = []
        for result in try view.results(query) { values.append(try Self.value(result.document)) }
        event.range = (least, values)
    }

    private static func value(_ document: StoredDocument) throws(Status) -> Int64 {
        guard case .integer(let value)? = try FieldsCodec.decode(document.fields)["n"] else { return -1 }
        return value
    }
}

/// Clients without patience need this: each of many succeeds.
@Suite struct FairnessTests {
    @Test func thirtyTwoClientsIncrementOneDocumentInFiveAttempts() throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        defer { database.close() }
        try database.commit([.set("c/counter", map(("n", .integer(0))))])
        let attempts = Gathered<Int>()
        let rounds = 3
        inThreads(32) { _ in
            for _ in 0..<rounds { attempts.append(Self.increment(database)) }
        }
        #expect(attempts.values.count == 32 * rounds)
        #expect(attempts.values.allSatisfy { $0 <= 5 }, "\(attempts.values)")
        #expect(try database.fields("c/counter") == map(("n", .integer(Int64(32 * rounds)))))
        #expect(database.locks.isIdle)
    }

    /// Reads, adds one and commits, as Google's Python client does it: immediately again after ABORTED from the commit,
    /// with the id of the first attempt.
    private static func increment(_ database: Database) -> Int {
        var first: [UInt8]?
        for attempt in 1...50 {
            do throws(Status) {
                let id = try database.beginTransaction(retry: first)
                if first == nil { first = id }
                guard case .integer(let number)? = try database.fields("c/counter", in: id)?["n"] else { return 1000 }
                let status = statusOf { () throws(Status) in
                    try database.commit([.set("c/counter", map(("n", .integer(number + 1))))], in: id)
                }
                if status == nil { return attempt }
                if status?.code != .aborted { return 2000 }
            } catch {
                return 3000
            }
        }
        return 4000
    }

    /// The same with several documents read in different orders: cycles form all the time.
    @Test func cyclesStarveNoTransaction() throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        defer { database.close() }
        let seed = TestRun.seed()
        let results = Gathered<Int>()
        inThreads(8) { index in
            var random = SeededGenerator(seed: seed &+ UInt64(index))
            for _ in 0..<20 { results.append(Self.incrementAll(database, &random)) }
        }
        // The oldest of eight wins, so about one round for each of the others; twice that where the machine is busy.
        #expect(results.values.allSatisfy { $0 <= 24 }, "seed \(seed): \(results.values)")
        for path in ["c/0", "c/1", "c/2"] {
            #expect(try database.fields(path) == map(("n", .integer(160))), "seed \(seed)")
        }
        #expect(database.locks.isIdle)
    }

    private static func incrementAll(_ database: Database, _ random: inout SeededGenerator) -> Int {
        let paths = ["c/0", "c/1", "c/2"].shuffled(using: &random)
        var first: [UInt8]?
        for attempt in 1...100 {
            do throws(Status) {
                let id = try database.beginTransaction(retry: first)
                if first == nil { first = id }
                var writes: [Write] = []
                for path in paths {
                    var number: Int64 = 0
                    if case .integer(let present)? = try database.fields(path, in: id)?["n"] { number = present }
                    writes.append(.set(path, map(("n", .integer(number + 1)))))
                }
                if statusOf({ () throws(Status) in try database.commit(writes, in: id) }) == nil { return attempt }
            } catch {
                return 1000
            }
        }
        return 2000
    }
}
