import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

/// What is left of a `LoggedStore` when its process or its machine ends at any moment.
struct LogCrashTests {
    /// Ends at each operation of the disk and of the base, one after the other.
    @Test(arguments: TestRun.seeds(1))
    func whatWasReturnedIsThereAfterAnEndAtAnyOperation(seed: UInt64) throws {
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        var operation = 1
        // Steps of some operations after the first ones, or else the test would take long.
        while true {
            var run = CrashRun(seed: seed &+ UInt64(operation))
            run.machine.lastOperation = operation
            try run.work(writes: 25)
            let isOver = !run.machine.isDead
            try run.restart(losesPower: operation % 3 != 0)
            try run.work(writes: 5)
            try run.restart(losesPower: true)
            if isOver { break }
            operation += operation < 60 ? 1 : 1 + run.exercise.random.below(3)
        }
        #expect(operation > 100)
    }

    /// Ends again and again, also while it starts, with failures of the disk and of the base between.
    @Test(arguments: TestRun.fixedSeedsAndNewOne)
    func manyEndsAndFailuresLoseNothing(seed: UInt64) throws {
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        var run = CrashRun(seed: seed)
        for _ in 0..<60 * TestRun.effort {
            run.machine.lastOperation = 1 + run.exercise.random.below(run.exercise.random.isOne(in: 3) ? 20 : 300)
            if run.exercise.random.isOne(in: 2) { run.machine.failureRate = 4 + run.exercise.random.below(40) }
            try run.work(writes: run.exercise.random.below(30))
            try run.restart(losesPower: run.exercise.random.isOne(in: 2))
        }
        #expect(run.applications > 10)
        print("lost logs, whole bases:", run.lostLogs, run.wholeBases)
        #expect(run.lostLogs > 0 && run.wholeBases > 0)
    }

    /// A change of any byte of a small log is found, or does no harm, or takes the last transaction, as a torn end does.
    @Test func aChangedByteIsFoundOrIsTheTornEnd() throws {
        var run = CrashRun(seed: 1)
        run.options.tableBytes = 1 << 20
        run.options.idleMilliseconds = 1_000_000
        run.options.segments.min = 1200
        run.options.segments.max = 1200
        var models = [StoreModel()]
        try run.open()
        for number in 0..<9 {
            var model = models[number]
            let value = run.exercise.random.bytes(number * 90)
            model[.entries, key(number / 2)] = value
            try run.store?.write { transaction throws(Status) in
                try transaction.put(.entries, key(number / 2), value)
            }
            models.append(model)
        }
        let position = try LogPosition(try run.machine.baseSnapshot())
        run.store?.close()
        let files = run.machine.files
        #expect(files.count > 1 && position.sequence == 0)
        var outcomes = [0, 0, 0]
        for (name, bytes) in files {
            for offset in bytes.indices {
                let mask: UInt8 = 1 << UInt8(offset % 8)
                let machine = try CrashRun.machine(with: files, position)
                machine.flip(name, offset, mask: mask)
                do throws(Status) {
                    let store = try machine.open(run.options)
                    let found = try StoreModel(try store.snapshot())
                    store.close()
                    if found == models[models.count - 1] {
                        outcomes[0] += 1
                    } else {
                        #expect(found == models[models.count - 2], "byte \(offset) of \(name)")
                        outcomes[1] += 1
                    }
                } catch {
                    #expect(error.code == .dataLoss && error.message.contains("/disk/\(name)"), "\(error)")
                    outcomes[2] += 1
                }
            }
        }
        print("unharmed, torn, found:", outcomes)
        #expect(outcomes.allSatisfy { $0 > 0 })
    }

    @Test func theTornEndIsWrittenOver() throws {
        var run = CrashRun(seed: 3)
        run.options.tableBytes = 1 << 20
        run.options.idleMilliseconds = 1_000_000
        try run.write(count: 5)
        run.store?.close()
        let files = run.machine.files
        let name = try #require(files.keys.max { UInt64($0) ?? 0 < UInt64($1) ?? 0 })
        let end = try #require(files[name]?.lastIndex { $0 != 0 })
        run.machine.flip(name, end - 9, mask: 1)
        run.machine.restart(losesPower: false)
        run.store = nil
        run.model = run.history[run.history.count - 2]
        for _ in 0..<3 {
            try run.open()
            try run.write(count: 1)
            try run.restart(losesPower: true)
        }
    }

    @Test func aBaseWithoutAPositionKeepsItsContentsAndGetsANumber() throws {
        let base = MemoryStore()
        try base.write { transaction throws(Status) in try transaction.put(.meta, [1], [2]) }
        let machine = SimulatedMachine(SeededGenerator(seed: 1))
        machine.replaceBase(base)
        var options = LoggedStoreOptions.simulated
        options.tableBytes = 1 << 20
        for round in 0..<3 {
            let store = try machine.open(options)
            #expect(try store.snapshot().get(.meta, [1]) == [2])
            #expect(try store.snapshot().count(.meta, .all, limit: .max) == 1 + round)
            try store.write { transaction throws(Status) in try transaction.put(.meta, [3, UInt8(round)], [4]) }
            machine.restart(losesPower: true)
            let position = try LogPosition(try machine.baseSnapshot())
            #expect(position.owner != 0 && position.sequence == 0)
        }
    }

    /// Each operation of the disk fails, one after the other; the store goes on, and nothing of a failed write is there.
    @Test func eachOperationOfTheDiskMayFail() throws {
        for operation in 1..<60 {
            var run = CrashRun(seed: 9)
            run.options.tableBytes = 1 << 20
            run.options.segments.min = 4096
            try run.open()
            run.machine.failingOperation = run.machine.operations + operation
            try run.write(count: 12)
            #expect(run.failedWrites <= 1)
            #expect(run.failedWrites == 0 || run.store?.health.isFailing == false)
            try run.restart(losesPower: true)
        }
    }
}

/// A store on a simulated machine, and what it should contain.
private struct CrashRun {
    let machine: SimulatedMachine
    var exercise: StoreExercise
    var options = LoggedStoreOptions.simulated
    var store: LoggedStore?
    /// What was acknowledged.
    var model = StoreModel()
    /// All states that were acknowledged.
    private(set) var history = [StoreModel()]
    /// What was not, since the last success: the writes in flight.
    private var doubtful: [StoreModel] = []
    private(set) var applications = 0
    private(set) var failedWrites = 0
    /// Ends after which a missing log is found, and after which nothing is missing without it.
    private(set) var (lostLogs, wholeBases) = (0, 0)
    /// Pieces of the appliers' work after a write.
    private let runsMax = 20

    init(seed: UInt64) {
        exercise = StoreExercise(seed: seed)
        machine = SimulatedMachine(exercise.random.fork())
        options.appliers = LogAppliers(threads: 0)
    }

    /// - Parameter position: that of the base, which has nothing else.
    static func machine(with files: [String: [UInt8]], _ position: LogPosition) throws -> SimulatedMachine {
        let machine = SimulatedMachine(SeededGenerator(seed: 1))
        let base = MemoryStore()
        try base.write { transaction throws(Status) in
            try transaction.put(.meta, LogPosition.key, position.bytes)
        }
        machine.replaceBase(base)
        machine.replaceFiles(files)
        return machine
    }

    mutating func open() throws {
        if store != nil { return }
        let store = try machine.open(options)
        try compare(store)
        self.store = store
    }

    /// Whether the store contains what was acknowledged, or that and one write in flight.
    private mutating func compare(_ store: LoggedStore) throws {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let found = try StoreModel(snapshot)
        if found == model { return }
        guard let index = doubtful.firstIndex(of: found) else {
            Issue.record("neither what was acknowledged nor what was in flight")
            return
        }
        // From now on it stays.
        model = doubtful[index]
        history.append(model)
    }

    /// Opens the store, if it isn't, writes and applies, until the machine ends.
    mutating func work(writes: Int) throws {
        for _ in 0..<5 where store == nil && !machine.isDead {
            do { try open() } catch let error as Status where error.code == .unavailable {}
        }
        if store != nil { try write(count: writes) }
    }

    mutating func write(count: Int) throws {
        try open()
        guard let store else { return }
        for _ in 0..<count where !machine.isDead {
            var draft = model
            do throws(Status) {
                try store.write { transaction throws(Status) in try exercise.change(transaction, &draft) }
                model = draft
                history.append(draft)
                doubtful = []
            } catch {
                #expect(error.code == .unavailable, "\(error)")
                failedWrites += 1
                // A file that is durable makes it void.
                if store.log.mustRoll || machine.isDead { doubtful.append(draft) }
            }
            if exercise.random.isOne(in: 4) { store.maintain() }
            for _ in 0..<exercise.random.below(runsMax) { options.appliers.runOne() }
            if exercise.random.isOne(in: 3) {
                let snapshot = try store.snapshot()
                try exercise.compare(snapshot, model)
                snapshot.close()
            }
        }
    }

    /// Ends the process, starts it again, and compares.
    mutating func restart(losesPower: Bool) throws {
        applications += store?.statistics.applications ?? 0
        store?.close()
        store = nil
        machine.restart(losesPower: losesPower)
        try loseLog()
        try open()
    }

    /// Opens a copy of which somebody has removed the log: that is found, or the base has what was acknowledged.
    private mutating func loseLog() throws {
        let copy = SimulatedMachine(SeededGenerator(seed: 1))
        copy.replaceBase(try machine.baseCopy())
        do throws(Status) {
            let store = try copy.open(options)
            defer { store.close() }
            let found = try StoreModel(try store.snapshot())
            #expect(found == model || doubtful.contains(found), "a lost log isn't found")
            wholeBases += 1
        } catch {
            #expect(error.code == .dataLoss && error.message.hasPrefix("The log /disk/ "), "\(error)")
            lostLogs += 1
        }
    }
}

extension LoggedStoreOptions {
    /// An application every few commits, in several slices, by a test's own thread.
    static var simulated: LoggedStoreOptions {
        var options = LoggedStoreOptions.short
        options.appliers = LogAppliers(threads: 0)
        options.budget = TableBudget(bytesMax: .max)
        options.segments.min = 2048
        options.segments.max = 8192
        options.emptyMilliseconds = 0
        options.retryMilliseconds = 0
        options.tableBytes = 4000
        options.tablesMax = 1000
        options.pause = { _ in }
        return options
    }
}

extension StoreModel {
    /// All that a snapshot shows.
    init(_ snapshot: any Snapshot) throws(Status) {
        self.init()
        for keyspace in Keyspace.allCases {
            let cursor = try snapshot.scan(keyspace, .all, reverse: false, values: true)
            while try cursor.next() { self[keyspace, cursor.key] = cursor.value }
        }
    }
}
