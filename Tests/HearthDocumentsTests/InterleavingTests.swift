import HearthConcurrency
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The pipeline, its preparer, locks, transactions, the hub of changes, clearing and closing, with a scheduler that
/// decides by a seed which one continues at each point where threads could meet. A run is one thread: it can be
/// repeated exactly.
///
/// `HEARTH_TEST_INTERLEAVINGS` is the number of seeds; `HEARTH_TEST_SEED` runs one.
@Suite struct InterleavingTests {
    @Test func everyInterleavingIsSerial() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        let count = TestRun.givenSeed == nil ? TestRun.interleavings(120) : 1
        var committed = 0
        var observed = 0
        for _ in 0..<count {
            let seed = TestRun.givenSeed ?? random.next() >> 16
            let world = try InterleavedWorld(seed)
            try world.run()
            committed += world.events.count
            try world.check()
            observed += world.observations
        }
        // The runs are not trivial.
        #expect(committed > count * 5 && observed > count * 4)
    }
}

/// A worker that runs when the scheduler lets it.
private final class VirtualDriver: WorkerDriver, @unchecked Sendable {
    // One thread uses all of this.
    private let body: @Sendable () -> Void
    private(set) var isAwake = false
    private(set) var isRunning = false
    private var isStopped = false

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    func wake() -> Bool {
        if isStopped { return false }
        isAwake = true
        return true
    }

    func run() {
        guard isAwake, !isRunning else { return }
        isAwake = false
        isRunning = true
        body()
        isRunning = false
    }

    func stop() {
        while isAwake, !isRunning { run() }
        isStopped = true
    }
}

/// A store that lets others continue between its operations.
private final class YieldingStore: Store, @unchecked Sendable {
    private let inner = MemoryStore()
    // Set once, before the store is used.
    var yield: () -> Void = {}

    func snapshot() throws(Status) -> any Snapshot {
        yield()
        return try inner.snapshot()
    }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        yield()
        let result = try inner.write { transaction throws(Status) in
            let result = try body(transaction)
            yield()
            return result
        }
        yield()
        return result
    }

    func maintain() {}
    func close() { inner.close() }
}

/// Denies commits while the number of a document is odd.
private struct EvenGate: CommitGuard {
    static let path = "c/g"

    func check(_ commit: GuardedCommit) throws(Status) {
        guard let document = try commit.before(resource(Self.path).path) else { return }
        if try InterleavedWorld.number(document) % 2 != 0 { throw Status(.permissionDenied, "The gate is shut.") }
    }
}

/// One run: a few clients do random operations; their results are compared with the order in which the writer made the
/// commits.
private final class InterleavedWorld: @unchecked Sendable {
    // One thread uses all of this.
    enum Read {
        case document(String, Int64?)
        /// Names of the documents whose number is at least this.
        case atLeast(Int64, [String])
    }

    enum Effect {
        case set(String, Int64)
        case delete(String)
        case increment(String)
    }

    struct Event {
        var reads: [Read] = []
        var effects: [Effect] = []
        var isGated = false
    }

    private enum Entry {
        case committed(ChangeSet)
        case cleared(version: Int64)
    }

    private struct OpenTransaction {
        var reads: [Read] = []
        var isReading = false
    }

    private let seed: UInt64
    private var random: SeededGenerator
    private let clock = StoppedClock()
    private let store = YieldingStore()
    private var drivers: [VirtualDriver] = []
    private var database: Database!
    private var log: [Entry] = []
    private var watchers: [InterleavedWatcher] = []
    private(set) var observations = 0
    private(set) var events: [Int64: Event] = [:]
    private var transactions: [[UInt8]: OpenTransaction] = [:]
    /// Requests whose answers are pending.
    private var pending = 0
    private var numbers: Int64 = 0
    private var depth = 0
    private var isClosed = false
    private var isEnding = false

    private static let names = (0..<5).map { "c/\($0)" } + [EvenGate.path]

    init(_ seed: UInt64) throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        database = try Database(name: testDatabaseName, store: store, clock: clock) { [unowned self] _, _, body in
            let driver = VirtualDriver(body)
            drivers.append(driver)
            return driver
        }
        database.observe { [unowned self] set in log.append(.committed(set)) }
        store.yield = { [unowned self] in others() }
    }

    static func number(_ document: StoredDocument) throws(Status) -> Int64 {
        guard case .integer(let number)? = try FieldsCodec.decode(document.fields)["n"] else { return -1 }
        return number
    }

    // MARK: The run

    func run() throws {
        let actions = 30 + random.below(60)
        for _ in 0..<actions { act() }
        if random.chance(30) { close() }
        for _ in 0..<400 where pending > 0 {
            for driver in drivers { driver.run() }
            clock.advance(seconds: 0.5)
            if !isClosed { database.tick() }
        }
        #expect(pending == 0, "seed \(seed): not all were answered")
        isEnding = true
        finishWatchers()
        if !isClosed {
            for id in transactions.keys { try database.rollback(id) }
            for driver in drivers { driver.run() }
            #expect(database.locks.isIdle, "seed \(seed)")
            #expect(database.openTransactions == 0, "seed \(seed)")
            #expect(database.statistics.queuedCommits == 0, "seed \(seed)")
            #expect(try IntegrityCheck.run(database).isSound, "seed \(seed)")
            close()
        }
    }

    private func close() {
        isClosed = true
        database.close()
    }

    /// Operations of other threads between two operations of the store.
    private func others() {
        guard depth < 3, !isClosed, !isEnding, random.chance(30) else { return }
        depth += 1
        for _ in 0...random.below(3) { act() }
        depth -= 1
    }

    private func act() {
        switch random.below(100) {
        case 0..<30: drivers[random.below(drivers.count)].run()
        case 30..<42: commit(effects(1 + random.below(3)))
        case 42..<50: watch()
        case 50..<56: commit(effects(1 + random.below(2)), isGated: true)
        case 56..<64: commit(effects(100 + random.below(20)), isGated: random.chance(30))
        case 64..<72: begin()
        case 72..<86: read()
        case 86..<93: end()
        case 93..<95: clear()
        default:
            clock.advance(seconds: Double(random.below(1500)) / 1000)
            database.tick()
        }
    }

    // MARK: Clients

    private func effects(_ count: Int) -> [Effect] {
        (0..<count).map { _ in
            let name = random.pick(Self.names)
            if random.chance(30) { return .increment(name) }
            if random.chance(10) { return .delete(name) }
            numbers += 1
            return .set(name, numbers * 1000)
        }
    }

    private func writes(_ effects: [Effect]) -> [Write] {
        effects.map { effect in
            switch effect {
            case .set(let name, let number): return .set(name, map(("n", .integer(number))))
            case .delete(let name): return .delete(name)
            case .increment(let name):
                return Write(
                    document: resource(name), operation: .update(fields: MapValue(), mask: []),
                    transforms: [FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1)))])
            }
        }
    }

    private func commit(_ effects: [Effect], isGated: Bool = false, in id: [UInt8]? = nil, reads: [Read] = []) {
        pending += 1
        let isWanted = !random.chance(3)
        var isAnswered = false
        let seed = seed
        let answered = Unchecked { [unowned self] (result: Result<CommitOutcome, Status>) in
            #expect(!isAnswered, "seed \(seed): answered twice")
            isAnswered = true
            pending -= 1
            switch result {
            case .success(let outcome):
                events[outcome.commitTime.microseconds] = Event(reads: reads, effects: effects, isGated: isGated)
            case .failure(let status): expectUsual(status)
            }
        }
        database.commit(
            writes(effects), transaction: id, guard: isGated ? EvenGate() : nil,
            requester: Requester(account: 1, connection: UInt64(random.below(4)), isAdministrator: false),
            isWanted: { isWanted }
        ) { answered.body($0) }
    }

    private func expectUsual(_ status: Status) {
        let usual: Set<Status.Code> = [.aborted, .cancelled, .permissionDenied]
        #expect(usual.contains(status.code) || (isClosed && status.code == .unavailable), "seed \(seed): \(status)")
    }

    private func begin() {
        do throws(Status) {
            let retry = random.chance(30) ? pickTransaction() : nil
            let concurrency: TransactionConcurrency = random.chance(30) ? .optimistic : .pessimistic
            let id = try database.begin(.readWrite(retry: retry, concurrency: concurrency))
            transactions[id] = OpenTransaction()
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
    }

    private func pickTransaction() -> [UInt8]? {
        // Sorted, because the order of a dictionary isn't the seed's.
        let ready = transactions.filter { !$0.value.isReading }.keys.sorted {
            $0[8..<16].lexicographicallyPrecedes($1[8..<16])
        }
        return ready.isEmpty ? nil : random.pick(ready)
    }

    private func read() {
        guard let id = pickTransaction() else { return }
        let isQuery = random.chance(30)
        let names = (0...random.below(2)).map { _ in random.pick(Self.names) }
        let least = numbers * 500
        do throws(Status) {
            let query = try NormalizedQuery(
                Query(
                    parent: ResourceName(database: testDatabaseName, path: ResourcePath()), scope: .collection("c"),
                    filter: .field(FieldPath("n"), .greaterThanOrEqual, .integer(least))))
            let targets: [Database.ReadTarget] =
                isQuery ? [.query(query)] : names.map { .document(resource($0).path) }
            transactions[id]!.isReading = true
            pending += 1
            let isRefused = random.chance(10)
            let done = Unchecked { [unowned self] (result: Result<Database.ViewGrant, Status>) in
                pending -= 1
                transactions[id]?.isReading = false
                do throws(Status) {
                    let grant = try result.get()
                    if isRefused { return grant.withdraw() }
                    var reads: [Read] = []
                    if isQuery {
                        reads.append(
                            .atLeast(least, try grant.view.results(query).map { DocumentKey.decode($0.key)!.string }))
                    } else {
                        for name in names {
                            let document = try grant.view.document(resource(name).path)
                            reads.append(.document(name, try document.map(Self.number)))
                        }
                    }
                    transactions[id]?.reads += reads
                } catch {
                    if error.code == .aborted { transactions[id] = nil }
                    expectUsual(error)
                }
            }
            database.read(.transaction(id), targets) { done.body($0) }
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
    }

    private func end() {
        guard let id = pickTransaction(), let transaction = transactions.removeValue(forKey: id) else { return }
        if random.chance(20) {
            do throws(Status) { try database.rollback(id) } catch { Issue.record("seed \(seed): \(error)") }
        } else {
            commit(effects(1 + random.below(2)), in: id, reads: transaction.reads)
        }
    }

    private func clear() {
        pending += 1
        let cleared = Unchecked { [unowned self] (result: Result<Void, Status>) in
            pending -= 1
            if case .success = result {
                database.changes.withVersion { [unowned self] in log.append(.cleared(version: $0)) }
            }
            if case .failure(let status) = result { expectUsual(status) }
        }
        database.clear { cleared.body($0) }
    }

    /// Listeners start, continue, and stop.
    private func watch() {
        if watchers.count < 4, random.chance(20) {
            let isCollection = random.chance(50)
            let names = isCollection ? Self.names : [random.pick(Self.names)]
            watchers.append(InterleavedWatcher(names, of: database, isCollection: isCollection))
        }
        if watchers.isEmpty { return }
        let watcher = random.pick(watchers)
        switch random.below(20) {
        case 0: watcher.stop()
        case 1..<4: watcher.settle()
        default: for _ in 0...random.below(4) { watcher.step(readsFirst: random.chance(30)) }
        }
    }

    /// All delivered events are processed; of an open database each watcher then knows the present.
    private func finishWatchers() {
        for watcher in watchers {
            // A watcher that must load again, after a clearing, requests a version twice.
            for _ in 0..<3 {
                if !isClosed { watcher.settle() }
                while !watcher.isIdle { watcher.step(readsFirst: random.chance(30)) }
            }
            #expect(watcher.faults == [], "seed \(seed)")
            if isClosed || watcher.hasStopped { continue }
            var version: Int64 = 0
            database.changes.withVersion { version = $0 }
            #expect(watcher.observations.last?.version == version, "seed \(seed): a watcher fell behind")
        }
    }

    // MARK: The judgement

    /// The watchers' report of a version is the state that the writer had made by then.
    private func checkWatchers(_ states: [(version: Int64, numbers: [String: Int64])]) {
        for watcher in watchers {
            observations += watcher.observations.count
            for observation in watcher.observations {
                let state = states.last { $0.version <= observation.version }?.numbers ?? [:]
                let wanted = state.filter { watcher.names.contains($0.key) }
                #expect(observation.numbers == wanted, "seed \(seed): a watcher at \(observation.version)")
            }
        }
    }

    /// Replays the writer's commits, in their order.
    func check() throws {
        var state: [String: Int64] = [:]
        var states: [(version: Int64, numbers: [String: Int64])] = []
        defer { checkWatchers(states) }
        for entry in log {
            let set: ChangeSet
            switch entry {
            case .committed(let committed): set = committed
            case .cleared(let version):
                state = [:]
                states.append((version, state))
                continue
            }
            if let event = events.removeValue(forKey: set.version) { apply(event, to: &state) }
            for change in set.changes {
                let name = DocumentKey.decode(change.key)!.string
                let after = try change.after.map(Self.number)
                #expect(state[name] == after, "seed \(seed): \(name) at \(set.version)")
                state[name] = after
            }
            states.append((set.version, state))
        }
        let left = events
        events = [:]
        // Commits that changed nothing have no record: they deleted what they made.
        for (version, event) in left {
            var isLeft: [String: Bool] = [:]
            for effect in event.effects {
                switch effect {
                case .set(let name, _), .increment(let name): isLeft[name] = true
                case .delete(let name): isLeft[name] = false
                }
            }
            #expect(!isLeft.values.contains(true), "seed \(seed): the commit at \(version) is lost")
        }
    }

    private func apply(_ event: Event, to state: inout [String: Int64]) {
        for read in event.reads {
            switch read {
            case .document(let name, let value):
                #expect(state[name] == value, "seed \(seed): read of \(name)")
            case .atLeast(let least, let names):
                #expect(
                    state.filter { $0.value >= least }.keys.sorted() == names.sorted(),
                    "seed \(seed): query from \(least)")
            }
        }
        if event.isGated { #expect((state[EvenGate.path] ?? 0) % 2 == 0, "seed \(seed): the gate was shut") }
        for effect in event.effects {
            switch effect {
            case .set(let name, let number): state[name] = number
            case .delete(let name): state[name] = nil
            case .increment(let name): state[name, default: 0] += 1
            }
        }
    }
}

/// Carries values that one thread uses through closures that could go to others.
private struct Unchecked<Argument>: @unchecked Sendable {
    let body: (Argument) -> Void

    init(_ body: @escaping (Argument) -> Void) { self.body = body }
}
