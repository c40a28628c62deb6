import HearthModel
import HearthEngine
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

/// The guarantees of `Store`, on each engine.
struct StoreContractTests {
    @Test(arguments: Engine.allCases, TestRun.fixedSeedsAndNewOne)
    func agreesWithAPlainModel(engine: Engine, seed: UInt64) throws {
        print("seed \(seed) (\(engine.rawValue)); HEARTH_TEST_SEED=\(seed) repeats it")
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        defer { store.close() }
        var exercise = StoreExercise(seed: seed)
        var model = StoreModel()
        var open: [(snapshot: any Snapshot, model: StoreModel)] = []
        for _ in 0..<150 {
            var draft = model
            let refuses = exercise.random.isOne(in: 4)
            do throws(Status) {
                try store.write { transaction throws(Status) in
                    try exercise.change(transaction, &draft)
                    if refuses { throw .aborted("on purpose") }
                }
                model = draft
                store.maintain()
            } catch {
                #expect(refuses && error.code == .aborted)
            }
            if open.count < 10 { open.append((try store.snapshot(), model)) }
            for entry in open { try exercise.compare(entry.snapshot, entry.model) }
            if exercise.random.isOne(in: 3) {
                let entry = open.remove(at: exercise.random.below(open.count))
                try exercise.compareAll(entry.snapshot, entry.model)
                entry.snapshot.close()
                entry.snapshot.close()
            }
        }
        for entry in open { try exercise.compareAll(entry.snapshot, entry.model) }
    }

    @Test(arguments: Engine.allCases, [false, true])
    func walksThatDropTheStartSeekByWholeKeys(engine: Engine, reverse: Bool) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        defer { store.close() }
        try store.write { transaction throws(Status) in
            for byte: UInt8 in 0..<100 { try transaction.put(.entries, [7, 7, byte * 2], [byte]) }
            try transaction.put(.entries, [7, 6, 1], [])
            try transaction.put(.entries, [7, 8], [])
        }
        let snapshot = try store.snapshot()
        let range = KeyRange(prefix: [7, 7])
        let cursor = try snapshot.scan(.entries, range, reverse: reverse, values: true, dropping: 2)
        func expect(_ byte: UInt8) throws {
            #expect(try cursor.next())
            #expect(cursor.key == [byte] && cursor.value == [byte / 2])
        }
        try expect(reverse ? 198 : 0)
        try expect(reverse ? 196 : 2)
        // After the present position, between two keys; before it; and at a key.
        try cursor.seek([7, 7, 101])
        try expect(reverse ? 100 : 102)
        try cursor.seek([7, 7, reverse ? 120 : 80])
        try expect(reverse ? 98 : 104)
        try cursor.seek([7, 7, reverse ? 4 : 194])
        try expect(reverse ? 4 : 194)
        try cursor.seek(reverse ? [7, 7] : [7, 7, 255])
        #expect(try !cursor.next())
        snapshot.close()
    }

    @Test(arguments: Engine.allCases)
    func keepsEmptyKeysAndValues(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        for keyspace in Keyspace.allCases {
            try store.write { transaction throws(Status) in
                #expect(try transaction.get(keyspace, []) == nil)
                try transaction.put(keyspace, [], [])
                try transaction.put(keyspace, [0], [])
            }
            let snapshot = try store.snapshot()
            #expect(try snapshot.get(keyspace, []) == [])
            let cursor = try snapshot.scan(keyspace, .all, reverse: true, values: true)
            #expect(try rows(cursor) == [Row(key: [0], value: []), Row(key: [], value: [])])
            #expect(try snapshot.count(keyspace, KeyRange(lower: [], upper: []), limit: 5) == 0)
            #expect(try snapshot.count(keyspace, KeyRange(lower: [], upper: [0]), limit: 5) == 1)
            snapshot.close()
        }
    }

    @Test(arguments: Engine.allCases)
    func keepsLargeValues(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        var random = SeededGenerator(seed: 7)
        let values = (0..<3).map { _ in random.bytes(1 << 20) }
        for keyspace in Keyspace.allCases {
            try store.write { transaction throws(Status) in
                for (index, value) in values.enumerated() { try transaction.put(keyspace, [UInt8(index)], value) }
            }
            let snapshot = try store.snapshot()
            #expect(try snapshot.get(keyspace, [1]) == values[1])
            let cursor = try snapshot.scan(keyspace, .all, reverse: false, values: true)
            #expect(try rows(cursor).map(\.value) == values)
        }
    }

    @Test(arguments: Engine.allCases)
    func aTransactionSeesItsOwnChanges(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        try store.write { transaction throws(Status) in
            for number in 0..<10 { try transaction.put(.entries, key(number), [1]) }
        }
        let before = try store.snapshot()
        let left = try store.write { transaction throws(Status) -> Int in
            try transaction.put(.entries, key(3), [2])
            try transaction.delete(.entries, key(4))
            #expect(try transaction.get(.entries, key(3)) == [2])
            #expect(try transaction.get(.entries, key(4)) == nil)
            #expect(try transaction.delete(.entries, KeyRange(lower: key(5), upper: nil), limit: 2) == 2)
            #expect(try store.snapshot().count(.entries, .all, limit: 100) == 10)
            return try transaction.count(.entries, .all, limit: 100)
        }
        #expect(left == 7)
        #expect(try before.count(.entries, .all, limit: 100) == 10)
        #expect(try before.get(.entries, key(3)) == [1])
        #expect(try store.snapshot().count(.entries, .all, limit: 100) == 7)
    }

    @Test(arguments: Engine.allCases)
    func aWalkOfATransactionOutlivesChanges(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        try store.write { transaction throws(Status) in
            for number in 0..<1000 { try transaction.put(.entries, key(number), [1]) }
            let cursor = try transaction.scan(.entries, .all, reverse: false, values: true)
            var seen = 0
            while try cursor.next() {
                #expect(cursor.key == key(seen))
                try transaction.delete(.entries, cursor.key)
                seen += 1
            }
            #expect(seen == 1000)
            #expect(try transaction.count(.entries, .all, limit: 10) == 0)
        }
    }

    @Test(arguments: Engine.allCases)
    func manyCursorsWalkAtOnce(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        try store.write { transaction throws(Status) in
            for number in 0..<100 { try transaction.put(.entries, key(number), key(number)) }
        }
        let snapshot = try store.snapshot()
        for _ in 0..<3 {
            var cursors: [any KeyCursor] = []
            for number in 0..<40 {
                cursors.append(
                    try snapshot.scan(
                        .entries, KeyRange(lower: key(number), upper: nil), reverse: false, values: false))
            }
            for step in 0..<50 {
                for (number, cursor) in cursors.enumerated() {
                    #expect(try cursor.next())
                    #expect(cursor.key == key(number + step))
                }
            }
            cursors[7].close()
            #expect(try !cursors[7].next())
        }
    }

    @Test(arguments: Engine.allCases)
    func seekNeverGoesBack(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        try store.write { transaction throws(Status) in
            for number in 0..<1000 { try transaction.put(.entries, key(number), []) }
        }
        let snapshot = try store.snapshot()
        for reverse in [false, true] {
            let range = KeyRange(lower: key(100), upper: key(900))
            let cursor = try snapshot.scan(.entries, range, reverse: reverse, values: false)
            // Numbers in the walk's direction: the walk goes from 0 to 799.
            func position(_ number: Int) -> [UInt8] { reverse ? key(899 - number) : key(100 + number) }
            try cursor.seek(position(-50))
            #expect(try cursor.next() && cursor.key == position(0))
            try cursor.seek(position(0))
            #expect(try cursor.next() && cursor.key == position(1))
            try cursor.seek(position(300))
            try cursor.seek(position(200))
            #expect(try cursor.next() && cursor.key == position(300))
            try cursor.seek(position(500) + [7])
            #expect(try cursor.next() && cursor.key == position(reverse ? 500 : 501))
            try cursor.seek(position(799))
            #expect(try cursor.next() && cursor.key == position(799))
            try cursor.seek(position(10))
            #expect(try !cursor.next())
            try cursor.seek(position(10))
            #expect(try !cursor.next())
        }
    }

    @Test(arguments: Engine.allCases)
    func readersSeeWholeCommitsAndNeverLessThanWasReturned(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        let returned = Atomic<Int>(-1)
        let isOver = Atomic(false)
        let failures = Mutex<[String]>([])
        let read: @Sendable () -> Void = {
            do throws(Status) {
                while !isOver.load(ordering: .acquiring) {
                    let least = returned.load(ordering: .acquiring)
                    let snapshot = try store.snapshot()
                    var seen: Set<[UInt8]?> = []
                    for keyspace in Keyspace.allCases {
                        for number in 0..<5 { seen.insert(try snapshot.get(keyspace, key(number))) }
                        let cursor = try snapshot.scan(keyspace, .all, reverse: false, values: true)
                        while try cursor.next() { seen.insert(cursor.value) }
                    }
                    snapshot.close()
                    let isFresh =
                        least < 0
                        || seen.allSatisfy { value in value.map { !$0.precedes(key(least)) } ?? false }
                    if seen.count != 1 || !isFresh { failures.withLock { $0.append("\(seen) after \(least)") } }
                }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
        }
        let threads = (0..<4).map { _ in testThread(read) }
        for round in 0..<300 {
            try store.write { transaction throws(Status) in
                for keyspace in Keyspace.allCases {
                    for number in 0..<5 { try transaction.put(keyspace, key(number), key(round)) }
                }
            }
            returned.store(round, ordering: .releasing)
        }
        isOver.store(true, ordering: .releasing)
        for thread in threads { thread.join() }
        #expect(failures.withLock { $0 } == [])
    }

    @Test(arguments: Engine.allCases)
    func writersOnSeveralThreadsAreSerialised(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        let increment: @Sendable () -> Void = {
            for _ in 0..<50 {
                do throws(Status) {
                    try store.write { transaction throws(Status) in
                        let old = try transaction.get(.meta, [1])?.count ?? 0
                        try transaction.put(.meta, [1], Array(repeating: 0, count: old + 1))
                    }
                } catch {
                    Issue.record("\(error)")
                }
            }
        }
        let threads = (0..<4).map { _ in testThread(increment) }
        for thread in threads { thread.join() }
        #expect(try store.snapshot().get(.meta, [1])?.count == 200)
    }

    @Test(arguments: Engine.allCases)
    func closingEndsEverything(engine: Engine) throws {
        let folder = TemporaryFolder()
        let store = try engine.open(folder)
        try store.write { transaction throws(Status) in try transaction.put(.meta, [1], [1]) }
        let snapshot = try store.snapshot()
        let cursor = try snapshot.scan(.meta, .all, reverse: false, values: false)
        #expect(try cursor.next())
        store.close()
        store.close()
        #expect(throws: Status.self) { try snapshot.get(.meta, [1]) }
        #expect(throws: Status.self) { try cursor.next() }
        #expect(throws: Status.self) { try store.snapshot() }
        #expect(throws: Status.self) { try store.write { _ in } }
        cursor.close()
        snapshot.close()
        store.maintain()
    }

    @Test(arguments: Engine.allCases)
    func aProviderKnowsItsDatabases(engine: Engine) throws {
        let folder = TemporaryFolder()
        let provider = try engine.provider(folder)
        let names = [DatabaseName(project: "a"), DatabaseName(project: "a", database: "b"), DatabaseName(project: "b")]
        #expect(try provider.databases().isEmpty)
        for name in names {
            let store = try provider.open(name)
            #expect(try provider.open(name) === store)
            try store.write { transaction throws(Status) in
                try transaction.put(.meta, [1], Array(name.string.utf8))
            }
        }
        #expect(try Set(provider.databases()) == Set(names))
        #expect(throws: Status.self) { try provider.delete(names[0]) }
        for name in names {
            try provider.open(name).close()
            let store = try provider.open(name)
            #expect(try store.snapshot().get(.meta, [1]) == Array(name.string.utf8))
            store.close()
        }
        try provider.delete(names[0])
        #expect(try Set(provider.databases()) == Set(names[1...]))
        #expect(throws: Status.notFound("The database \(names[0]) does not exist.")) { try provider.delete(names[0]) }
        #expect(try provider.open(names[0]).snapshot().get(.meta, [1]) == nil)
    }
}
