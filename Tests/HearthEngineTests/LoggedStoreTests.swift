import HearthModel
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine

/// What a `LoggedStore` does beyond the contract of stores.
struct LoggedStoreTests {
    @Test func snapshotsOutliveManyApplications() throws {
        let manual = try ManualStore { $0.tableBytes = 3000 }
        let store = manual.store
        defer { store.close() }
        var held: [(snapshot: any Snapshot, round: Int)] = []
        for round in 0..<300 {
            try put(store, round % 50..<round % 50 + 20, key(round))
            if round % 15 == 0 { held.append((try store.snapshot(.long), round)) }
            for _ in 0..<8 { manual.options.appliers.runOne() }
        }
        #expect(store.statistics.applications > 10)
        for (snapshot, round) in held {
            for number in round % 50..<round % 50 + 20 {
                #expect(try snapshot.get(.entries, key(number)) == key(round))
            }
            let cursor = try snapshot.scan(.entries, .all, reverse: true, values: false)
            #expect(try rows(cursor).count == min(69, round + 20))
            #expect(try snapshot.count(.entries, .all, limit: .max) == min(69, round + 20))
            snapshot.close()
        }
    }

    @Test func theLogsOwnRecordIsHidden() throws {
        let manual = try ManualStore { $0.idleMilliseconds = 0 }
        let store = manual.store
        defer { store.close() }
        try store.write { transaction throws(Status) in
            try transaction.put(.meta, [1], [1])
            try transaction.put(.meta, [0xFF, 0xFF, 0xFF], [2])
        }
        manual.applyAll()
        #expect(try manual.machine.baseSnapshot().get(.meta, LogPosition.key) != nil)
        let snapshot = try store.snapshot()
        #expect(try snapshot.get(.meta, LogPosition.key) == nil)
        #expect(try snapshot.count(.meta, .all, limit: .max) == 2)
        for reverse in [false, true] {
            #expect(try rows(snapshot.scan(.meta, .all, reverse: reverse, values: false)).count == 2)
        }
        try store.write { transaction throws(Status) in
            #expect(try transaction.delete(.meta, .all, limit: .max) == 2)
        }
        manual.applyAll()
        #expect(try manual.machine.baseSnapshot().count(.meta, .all, limit: .max) == 1)
        #expect(throws: Status.self) {
            try store.write { transaction throws(Status) in try transaction.put(.meta, LogPosition.key, []) }
        }
    }

    @Test func anIdleStoreHasNoLog() throws {
        let manual = try ManualStore { $0.idleMilliseconds = 0 }
        let machine = manual.machine
        #expect(machine.files.isEmpty)
        for round in 0..<3 {
            try put(manual.store, round..<round + 10)
            #expect(!machine.files.isEmpty)
            manual.applyAll()
            #expect(machine.files.isEmpty)
            #expect(try machine.baseSnapshot().count(.entries, .all, limit: .max) == 10 + round)
        }
        manual.store.close()
        machine.restart(losesPower: true)
        let again = try machine.open(manual.options)
        #expect(try again.entryCount() == 12)
        again.close()
    }

    /// A start that reads much of a log applies it at once.
    @Test func aLongLogIsAppliedAfterTheStart() throws {
        let manual = try ManualStore { $0.tableBytes = 10_000 }
        for number in 0..<100 { try put(manual.store, number..<number + 1) }
        manual.store.close()
        manual.machine.restart(losesPower: true)
        let store = try manual.machine.open(manual.options)
        #expect(store.present.layers.hasFrozen)
        manual.options.appliers.runAll()
        #expect(!store.present.layers.hasFrozen)
        #expect(try manual.machine.baseSnapshot().count(.entries, .all, limit: .max) == 100)
        store.close()
    }

    /// A keyspace that is deleted as a whole leaves no tombstones.
    @Test func deletionOfAKeyspaceIsOneMark() throws {
        let manual = try ManualStore { $0.idleMilliseconds = 0 }
        let store = manual.store
        defer { store.close() }
        try put(store, 0..<5000)
        manual.applyAll()
        try store.write { transaction throws(Status) in
            #expect(try transaction.delete(.entries, .all, limit: .max) == 5000)
        }
        #expect(store.activeBytes < 100)
        #expect(try store.entryCount() == 0)
        try put(store, 7..<9)
        #expect(try store.entryCount() == 2)
        manual.applyAll()
        #expect(try manual.machine.baseSnapshot().count(.entries, .all, limit: .max) == 2)
    }

    @Test func theDeletedStartOfAQueueIsSkipped() throws {
        let manual = try ManualStore { $0.tableBytes = 1 << 20 }
        let store = manual.store
        defer { store.close() }
        try put(store, 0..<3000)
        store.freezeSoon()
        manual.options.appliers.runAll()
        for round in 0..<20 {
            try store.write { transaction throws(Status) in
                let range = KeyRange(lower: [], upper: key(100 * round + 100))
                #expect(try transaction.delete(.entries, range, limit: 1000) == 100)
            }
        }
        #expect(store.activeBytes < 100)
        #expect(try store.entryCount() == 1000)
        // A key in the range is found again.
        try put(store, 50..<51)
        let snapshot = try store.snapshot()
        let cursor = try snapshot.scan(.entries, .all, reverse: false, values: false)
        #expect(try cursor.next() && cursor.key == key(50))
        #expect(try cursor.next() && cursor.key == key(2000))
        snapshot.close()
        store.freezeSoon()
        manual.options.appliers.runAll()
        #expect(try manual.machine.baseSnapshot().count(.entries, .all, limit: .max) == 1001)
    }

    /// Keys that were deleted one by one are met once.
    @Test func tombstonesBecomeARangeWhenTheirRangeIsDeleted() throws {
        let manual = try ManualStore { $0.tableBytes = 1 << 20 }
        let store = manual.store
        defer { store.close() }
        try put(store, 0..<1000)
        manual.applyAll()
        store.freezeSoon()
        manual.options.appliers.runAll()
        try store.write { transaction throws(Status) in
            for number in 0..<1000 { try transaction.delete(.entries, key(number)) }
        }
        #expect(store.activeBytes > 10_000)
        try store.write { transaction throws(Status) in
            #expect(try transaction.delete(.entries, KeyRange(lower: [], upper: key(2000)), limit: 10) == 0)
        }
        #expect(store.activeBytes < 100)
        #expect(try store.entryCount() == 0)
    }

    /// A frozen key far behind the end of a walk, below many ranges, isn't looked for.
    @Test func walksOverFrozenKeysThatAreHidden() throws {
        let manual = try ManualStore { $0.tableBytes = 1 << 20 }
        let store = manual.store
        defer { store.close() }
        try put(store, 0..<3000)
        store.freezeSoon()
        #expect(store.present.layers.hasFrozen)
        try store.write { transaction throws(Status) in
            for start in stride(from: 0, to: 3000, by: 30) where start != 600 {
                let range = KeyRange(lower: key(start), upper: key(start + 29))
                #expect(try transaction.delete(.entries, range, limit: .max) == 29)
            }
        }
        let expected = (0..<3000).filter { $0 % 30 == 29 || $0 / 30 == 20 }.map { key($0) }
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        for reverse in [false, true] {
            let found = try rows(snapshot.scan(.entries, .all, reverse: reverse, values: false)).map(\.key)
            #expect(found == (reverse ? expected.reversed() : expected))
        }
        #expect(try snapshot.count(.entries, .all, limit: .max) == expected.count)
        #expect(try snapshot.count(.entries, .all, limit: 3) == 3)
        manual.options.appliers.runAll()
        #expect(try store.entryCount() == expected.count)
    }

    @Test(arguments: TestRun.fixedSeedsAndNewOne)
    func countsAreRightWithFewAndManyChanges(seed: UInt64) throws {
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        var random = SeededGenerator(seed: seed)
        let manual = try ManualStore { $0.tableBytes = 1 << 20 }
        let store = manual.store
        defer { store.close() }
        var present = Set(0..<2000)
        try put(store, 0..<2000)
        for round in 0..<40 {
            if round % 10 == 0 { store.freezeSoon() }
            for _ in 0..<random.below(100) { manual.options.appliers.runOne() }
            try store.write { transaction throws(Status) in
                for _ in 0..<random.below(30) {
                    let number = random.below(2500)
                    if random.isOne(in: 2) {
                        try transaction.put(.entries, key(number), [2])
                        present.insert(number)
                    } else {
                        try transaction.delete(.entries, key(number))
                        present.remove(number)
                    }
                }
            }
            let snapshot = try store.snapshot()
            for _ in 0..<10 {
                let (lower, upper) = (random.below(2500), random.below(2500))
                let limit = random.isOne(in: 2) ? Int.max : random.below(300)
                let range = KeyRange(lower: key(lower), upper: random.isOne(in: 5) ? nil : key(upper))
                let expected = present.filter { $0 >= lower && (range.upper == nil || $0 < upper) }.count
                #expect(try snapshot.count(.entries, range, limit: limit) == min(limit, expected))
            }
            snapshot.close()
        }
    }

    @Test func closingKeepsTheRestInTheLog() throws {
        let manual = try ManualStore()
        let (store, machine) = (manual.store, manual.machine)
        try put(store, 0..<500)
        store.freezeSoon()
        manual.options.appliers.runOne()
        let snapshot = try store.snapshot()
        let reason = Status.unavailable("for a reason")
        store.close(because: reason)
        #expect(throws: reason) { try snapshot.get(.entries, key(1)) }
        #expect(throws: reason) { try store.snapshot() }
        #expect(throws: reason) { try store.write { _ in } }
        snapshot.close()
        machine.restart(losesPower: true)
        #expect(try machine.baseSnapshot().count(.entries, .all, limit: .max) < 500)
        let again = try machine.open(manual.options)
        #expect(try again.entryCount() == 500)
        again.close()
    }

    @Test func aStoreIsFreedAlthoughAppliersKnowIt() throws {
        let budget = TableBudget(bytesMax: 1 << 20)
        weak var freed: LoggedStore?
        do {
            let manual = try ManualStore { $0.budget = budget }
            try put(manual.store, 0..<500)
            manual.store.maintain()
            freed = manual.store
        }
        #expect(freed == nil)
        #expect(budget.bytes == 0)
    }

    /// A start that fails closes the base.
    @Test func aFailedStartFreesTheBase() throws {
        let machine = SimulatedMachine(SeededGenerator(seed: 1))
        machine.failingOperation = 1
        #expect(throws: Status.self) { try machine.open(.simulated) }
        #expect(throws: Status.self) { try machine.baseSnapshot() }
        let store = try machine.open(.simulated)
        #expect(try store.entryCount() == 0)
        store.close()
    }

    @Test func damageOfTheLogIsReported() throws {
        let manual = try ManualStore { $0.tableBytes = 1 << 20 }
        let store = manual.store
        defer { store.close() }
        for number in 0..<5 { try put(store, number..<number + 1) }
        #expect(try store.damage(max: 10) == [])
        let name = try #require(manual.machine.files.keys.first)
        manual.machine.flip(name, LogSegment.headerBytes + 30, mask: 4)
        let found = try store.damage(max: 10)
        #expect(found.count == 1)
        #expect(found.first?.contains("/disk/\(name) is damaged at byte \(LogSegment.headerBytes)") == true)
    }

    @Test func aReadOnlyStoreChangesNothing() throws {
        let manual = try ManualStore()
        let machine = manual.machine
        try put(manual.store, 0..<10)
        manual.store.close()
        machine.restart(losesPower: false)
        let files = machine.files
        var readOnly = manual.options
        readOnly.isReadOnly = true
        let reader = try machine.open(readOnly)
        #expect(try reader.entryCount() == 10)
        #expect(throws: Status.self) { try put(reader, 0..<1) }
        reader.maintain()
        manual.options.appliers.runAll()
        reader.close()
        #expect(machine.files == files)
    }

    /// The sum of all accounts is the same in each snapshot, while they are changed and applied.
    @Test(arguments: TestRun.fixedSeedsAndNewOne)
    func readersSeeWholeTransactionsWhileTablesAreApplied(seed: UInt64) throws {
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        let folder = TemporaryFolder()
        let store = try Engine.loggedSQLite.open(folder)
        defer { store.close() }
        let accounts = 40
        try put(store, 0..<accounts, key(100))
        let isOver = Atomic(false)
        inThreads(3) { thread in
            var random = SeededGenerator(seed: seed &+ UInt64(thread))
            do throws(Status) {
                if thread == 0 {
                    defer { isOver.store(true, ordering: .releasing) }
                    for _ in 0..<400 { try Self.transfer(store, &random) }
                } else {
                    while !isOver.load(ordering: .acquiring) { try Self.check(store, accounts, &random) }
                }
            } catch { Issue.record("\(error)") }
        }
        #expect(eventually { store.statistics.applications > 3 })
    }

    private static func check(_ store: any Store, _ accounts: Int, _ random: inout SeededGenerator) throws(Status) {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let cursor = try snapshot.scan(.entries, .all, reverse: random.isOne(in: 2), values: true)
        let found = try rows(cursor)
        #expect(found.reduce(0) { $0 + amount($1.value) } == accounts * 100)
        #expect(found.count == accounts)
        #expect(try snapshot.count(.entries, .all, limit: .max) == accounts)
    }

    /// An account is closed and another one opened at times, so that there are tombstones.
    private static func transfer(_ store: any Store, _ random: inout SeededGenerator) throws(Status) {
        try store.write { transaction throws(Status) in
            let cursor = try transaction.scan(.entries, .all, reverse: false, values: true)
            let found = try rows(cursor)
            let (from, to) = (random.pick(found), random.pick(found))
            if from.key == to.key { return }
            try transaction.put(.entries, from.key, key(amount(from.value) - 1))
            try transaction.put(.entries, to.key, key(amount(to.value) + 1))
            guard random.isOne(in: 2) else { return }
            try transaction.delete(.entries, to.key)
            var new = key(random.below(100_000))
            while try transaction.get(.entries, new) != nil { new = key(random.below(100_000)) }
            try transaction.put(.entries, new, key(amount(to.value) + 1))
        }
    }

    private static func amount(_ value: [UInt8]) -> Int {
        Int(truncatingIfNeeded: value.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    /// Ranges in the middle that are deleted in parts, beside puts into them, compared with a store in memory.
    @Test(arguments: 0..<8 as Range<UInt64>) func rangesDeletedInPartsAreEmpty(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let manual = try ManualStore { $0.tableBytes = 4000 }
        let model = MemoryStore()
        defer { manual.store.close() }
        for _ in 0..<60 {
            let lower = random.below(200)
            let range = KeyRange(lower: key(lower), upper: key(lower + random.below(60)))
            let limit = 1 + random.below(12)
            let keys = (0..<random.below(10)).map { _ in random.below(200) }
            let value = [UInt8(random.below(256))]
            func change(_ store: any Store) throws(Status) -> Int {
                try store.write { transaction throws(Status) in
                    for number in keys { try transaction.put(.entries, key(number), value) }
                    var count = try transaction.delete(.entries, range, limit: limit)
                    if count == limit { count += try transaction.delete(.entries, range, limit: limit) }
                    return count
                }
            }
            #expect(try change(manual.store) == change(model))
            if random.isOne(in: 4) { manual.options.appliers.runOne() }
            let (mine, other) = (try manual.store.snapshot(), try model.snapshot())
            defer {
                mine.close()
                other.close()
            }
            let part = KeyRange(lower: key(random.below(200)), upper: nil)
            #expect(
                try rows(mine.scan(.entries, part, reverse: false, values: true))
                    == rows(other.scan(.entries, part, reverse: false, values: true)))
            #expect(try mine.count(.entries, part, limit: .max) == other.count(.entries, part, limit: .max))
        }
    }
}
