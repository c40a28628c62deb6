import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthTriggers

/// What a store says of the number of its events and dead letters.
struct TriggerCountsTests {
    /// Counts what is read of another snapshot.
    private final class CountingSnapshot: Snapshot {
        final class Cursor: KeyCursor {
            let base: any KeyCursor
            let owner: CountingSnapshot

            init(_ base: any KeyCursor, _ owner: CountingSnapshot) {
                self.base = base
                self.owner = owner
            }

            func next() throws(Status) -> Bool {
                owner.reads += 1
                return try base.next()
            }

            var key: [UInt8] { base.key }
            var value: [UInt8] { base.value }
            func seek(_ key: [UInt8]) throws(Status) { try base.seek(key) }
            func close() { base.close() }
        }

        let base: any Snapshot
        /// Keys.
        private(set) var reads = 0

        init(_ base: any Snapshot) { self.base = base }

        func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
            reads += 1
            return try base.get(keyspace, key)
        }

        func scan(
            _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
        ) throws(Status) -> any KeyCursor {
            Cursor(try base.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping), self)
        }

        func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
            let count = try base.count(keyspace, range, limit: limit)
            reads += count
            return count
        }

        func close() { base.close() }
    }

    private static let record = QueuedEvent(author: [1]).bytes

    private func definition(_ name: String) throws -> TriggerDefinition {
        let json = Array(
            #"{"event": "google.cloud.firestore.document.v1.written", "document": "c/{id}", "url": "http://h/"}"#.utf8)
        return try TriggerDefinition(
            name: name, try ConfigurationValue(parsing: json, file: "f"), source: .file, defaultProject: "p"
        ) { (_) throws(Status) in [] }
    }

    private func reading<Result>(_ store: MemoryStore, _ body: (any Snapshot) throws -> Result) throws -> Result {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try body(snapshot)
    }

    private func opened(_ store: MemoryStore) throws -> TriggerLedger {
        try reading(store) { try TriggerLedger(DocumentEventRecords.self, in: $0) }
    }

    private func problems(_ store: MemoryStore) throws -> [String] {
        try reading(store) { try TriggerCounts.problems(in: $0).sentences }
    }

    /// Nil when the store has no counts.
    private func countsCount(_ store: MemoryStore) throws -> Int? {
        try reading(store) { try TriggerCounts.all(in: $0)?.count }
    }

    /// A transaction of the writer's.
    private func edit(
        _ store: MemoryStore, _ ledger: TriggerLedger, isUndone: Bool = false,
        _ body: (any StoreTransaction) throws(Status) -> Void
    ) throws {
        do throws(Status) {
            try store.write { transaction throws(Status) in
                try body(transaction)
                try ledger.finish(in: transaction)
                if isUndone { throw .unavailable("") }
            }
        } catch {
            guard isUndone else { throw error }
        }
        _ = ledger.ended(isDurable: !isUndone)
    }

    private func settlement(
        _ events: [Delivery.Event], at time: Int64, areDead: Bool, _ record: [UInt8] = Self.record
    ) throws -> EventSettlement {
        let result = areDead ? Delivery.Settled.Result.dead(attempts: 1, DeliveryFailure(.timeout, "")) : .delivered
        return try EventSettlement(
            events.map { Delivery.Settled(event: $0, result: result) }, of: try definition("t"), at: time
        ) { _ in record }
    }

    /// Two triggers, of which one is gone before it got events.
    private func filled(_ count: Int) throws -> MemoryStore {
        let store = MemoryStore()
        let ledger = try opened(store)
        try edit(store, ledger) { transaction throws(Status) in
            for name in ["t", "u"] {
                for number in 1...count {
                    let event = Delivery.Event(version: Int64(number), key: [7])
                    try ledger.put(event, Self.record, for: TriggerID(name: name), in: transaction)
                }
            }
        }
        let dead = try settlement((1...10).map { Delivery.Event(version: $0, key: [7]) }, at: 5, areDead: true)
        try edit(store, ledger) { transaction throws(Status) in
            try ledger.settle(dead, of: TriggerID(name: "t"), in: transaction)
        }
        return store
    }

    private func expectCounts(_ ledger: TriggerLedger, _ count: Int) {
        let (t, u) = (TriggerID(name: "t"), TriggerID(name: "u"))
        #expect(Set(ledger.ids) == [t, u])
        #expect(ledger.pending(t) == count - 10 && ledger.deadLetterCount(t) == 10 && ledger.oldest(t) == 11)
        #expect(ledger.pending(u) == count && ledger.deadLetterCount(u) == 0 && ledger.oldest(u) == 1)
    }

    @Test func aStoreIsOpenedWithoutALookAtItsEvents() throws {
        let store = try filled(3000)
        let snapshot = CountingSnapshot(try store.snapshot())
        defer { snapshot.close() }
        expectCounts(try TriggerLedger(DocumentEventRecords.self, in: snapshot), 3000)
        #expect(snapshot.reads < 20)
    }

    /// Events of commits that were undone are no more, wherever they are; the others wait as before.
    @Test(arguments: [0, 5, 30, 1500, 3000])
    func eventsOfUndoneCommitsAreForgotten(time: Int) throws {
        let store = try filled(3000)
        let (t, u) = (TriggerID(name: "t"), TriggerID(name: "u"))
        let large = [UInt8](repeating: 1, count: 5000)
        var ledger = try opened(store)
        try edit(store, ledger) { transaction throws(Status) in
            for version in [Int64(1501), 4000] {
                try ledger.put(Delivery.Event(version: version, key: [8]), large, for: u, in: transaction)
            }
        }
        let after = 2 * (3000 - time) + (time < 1501 ? 2 : 1)
        #expect(try TriggerRollback.run(store, to: Int64(time)) == after)
        #expect(try TriggerRollback.run(store, to: Int64(time)) == 0)
        #expect(try problems(store) == [])
        ledger = try opened(store)
        let dead = min(10, time)
        #expect(ledger.pending(t) == time - dead && ledger.deadLetterCount(t) == dead)
        #expect(ledger.pending(u) == time + (time < 1501 ? 0 : 1))
        #expect(ledger.oldest(t) == (time > 10 ? 11 : nil))
    }

    private func forgetCounts(_ store: MemoryStore) throws {
        try store.write { transaction throws(Status) in
            _ = try transaction.delete(.meta, KeyRange(prefix: TriggerCounts.completeKey), limit: .max)
        }
    }

    @Test func aStoreOfAnEarlierVersionGetsCountsWithItsNextTransaction() throws {
        let store = try filled(50)
        try forgetCounts(store)
        var ledger = try opened(store)
        expectCounts(ledger, 50)
        #expect(ledger.countsAreDue)
        // Not by one that is undone.
        try edit(store, ledger, isUndone: true) { _ throws(Status) in }
        #expect(ledger.countsAreDue)
        #expect(try countsCount(store) == nil)
        try edit(store, ledger) { _ throws(Status) in }
        #expect(!ledger.countsAreDue)
        #expect(try countsCount(store) == 2 && problems(store) == [])
        ledger = try opened(store)
        expectCounts(ledger, 50)
        // One whose counts can't be read is counted again.
        try store.write { transaction throws(Status) in try transaction.put(.meta, TriggerCounts.key(1), [9]) }
        expectCounts(try opened(store), 50)
    }

    /// By opening it, with nothing else.
    @Test func aDatabaseOfAnEarlierVersionIsCountedOnce() async throws {
        let store = try filled(50)
        try forgetCounts(store)
        var configuration = TriggerService.Configuration()
        configuration.definitions = []
        let service = try TriggerService(configuration)
        defer { service.stop() }
        let database = try Database(name: DatabaseName(project: "p"), store: store, clock: SystemClock())
        try service.opened(database)
        #expect(await eventually { try! countsCount(store) != nil })
    }

    @Test(arguments: [(-1, 0, 0), (0, Int64.min, 0), (0, 0, -1), (1 << 50, 0, 0), (0, .max, 0)])
    func damagedCountsAreNone(pending: Int64, oldest: Int64, nextBody: Int64) {
        let bytes = [pending, 0, oldest, nextBody].flatMap { number in
            withUnsafeBytes(of: number.bigEndian) { Array($0) }
        }
        #expect(TriggerCounts(bytes) == nil)
    }

    @Test func aCheckComparesCountsWithRecords() throws {
        let store = try filled(50)
        #expect(try problems(store) == [])
        try store.write { transaction throws(Status) in
            _ = try EventQueue(trigger: 1).remove(Delivery.Event(version: 20, key: [7]), in: transaction)
            try transaction.delete(.meta, TriggerCounts.key(2))
        }
        let known = "its counts say 40 events since 11 and 10 dead letters, next body 1"
        #expect(
            try problems(store) == [
                "meta: trigger 1 has 39 events since 11 and 10 dead letters, next body 1, \(known)",
                "meta: the counts of trigger 2 are missing or can't be read",
            ])
    }

    /// Also with a key that is none, which hides the counts of its trigger, and may be of none.
    @Test(arguments: [[], [0], [0, 0, 0], [0, 0, 0, 1, 0]] as [[UInt8]])
    func aCheckFindsDamagedKeysAndForgettingMendsThem(key: [UInt8]) throws {
        let store = try filled(50)
        try store.write { transaction throws(Status) in
            let bytes = try transaction.get(.meta, TriggerCounts.key(1)) ?? []
            try transaction.delete(.meta, TriggerCounts.key(1))
            try transaction.put(.meta, TriggerCounts.completeKey + key, bytes)
        }
        let found = try reading(store) { try TriggerCounts.problems(in: $0) }
        let missing = "meta: the counts of trigger 1 are missing or can't be read"
        #expect(found.sentences == (key.isEmpty ? [] : ["meta: 1 counts of triggers have no number"]) + [missing])
        #expect(found.areCountsWrong)
        try store.write { transaction throws(Status) in try TriggerCounts.forget(in: transaction) }
        #expect(try problems(store) == [])
        let ledger = try opened(store)
        expectCounts(ledger, 50)
        try edit(store, ledger) { _ throws(Status) in }
        #expect(try problems(store) == [] && countsCount(store) == 2)
    }

    /// Whatever becomes of a transaction, and whenever the store is opened again.
    @Test(arguments: 0..<40) func countsAreExactAfterAnyTransaction(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let store = MemoryStore()
        var ledger = try opened(store)
        var version: Int64 = 0
        for step in 0..<120 {
            let id = TriggerID(name: ["a", "b", "c"][Int.random(in: 0..<3, using: &random)])
            let waiting = try reading(store) { snapshot in
                try ledger.queue(of: id)?.events(after: nil, countMax: 30, in: snapshot) ?? []
            }
            let some = waiting.filter { _ in Bool.random(using: &random) }
            let record =
                [
                    Self.record, QueuedEvent(author: Array(repeating: 7, count: EventBodies.pieceBytes - 5)).bytes,
                    QueuedEvent(author: Array(repeating: 8, count: 5000)).bytes,
                ].randomElement(using: &random) ?? []
            let settled = try settlement(some, at: Int64(step), areDead: Bool.random(using: &random), record)
            let kind = Int.random(in: 0..<12, using: &random)
            let isUndone = Int.random(in: 0..<4, using: &random) == 0
            version += 1
            try edit(store, ledger, isUndone: isUndone) { transaction throws(Status) in
                switch kind {
                case 0..<5:
                    for key in 0..<UInt8(3) {
                        let event = Delivery.Event(version: version, key: [key])
                        try ledger.put(event, record, for: id, in: transaction)
                    }
                case 5..<8: try ledger.settle(settled, of: id, in: transaction)
                case 8: _ = try ledger.replay(id, after: nil, in: transaction, limit: 2, bytesMax: 9999)
                case 9: _ = try ledger.deleteDeadLetters(id, before: Int64(step / 2), in: transaction, limit: 3)
                case 10: _ = try ledger.forget(id, in: transaction, limit: 4)
                default: if step % 5 == 0 { try ledger.clear(in: transaction) }
                }
            }
            let again = try opened(store)
            let known = ledger.ids.filter { ledger.hasAny(of: $0) && !$0.name.isEmpty }
            for id in known {
                // A name is lost with the first step of a deletion.
                guard let other = again.ids.first(where: { $0 == id }) else { continue }
                #expect(again.pending(other) == ledger.pending(id) && again.oldest(other) == ledger.oldest(id))
                #expect(again.deadLetterCount(other) == ledger.deadLetterCount(id))
            }
            #expect(try problems(store) == [], "seed \(seed), step \(step), kind \(kind)")
            if Int.random(in: 0..<10, using: &random) == 0 { ledger = again }
        }
    }

    // MARK: Large records

    private func rows(_ store: MemoryStore, _ mark: UInt8) throws -> Int {
        try reading(store) { try $0.count(.meta, KeyRange(prefix: [mark]), limit: .max) }
    }

    /// No row of `meta` is large, and a replay copies nothing.
    @Test func aLargeRecordGoesFromTheDeadLetterToTheQueueWithoutACopy() throws {
        let (store, id) = (MemoryStore(), TriggerID(name: "t"))
        let ledger = try opened(store)
        let events = (1...3).map { Delivery.Event(version: $0, key: [7]) }
        let large = QueuedEvent(author: (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) }).bytes
        try edit(store, ledger) { transaction throws(Status) in
            for event in events { try ledger.put(event, Self.record, for: id, in: transaction) }
        }
        let dead = try settlement(events, at: 5, areDead: true, large)
        try edit(store, ledger) { transaction throws(Status) in try ledger.settle(dead, of: id, in: transaction) }
        let pieces = try rows(store, EventKeys.body)
        #expect(pieces == 3 * EventBodies.Reference(number: 1, sizeBytes: large.count).pieceCount)
        let largest = try reading(store) { snapshot in
            let cursor = try snapshot.scan(.meta, KeyRange(prefix: []), reverse: false, values: true)
            var largest = 0
            while try cursor.next() { largest = max(largest, cursor.key.count + cursor.value.count) }
            return largest
        }
        #expect(largest < 1000)
        let letters = try #require(ledger.deadLetters(of: id))
        let entries = try reading(store) { try letters.entries(after: nil, countMax: 9, in: $0) }
        try reading(store) { snapshot in
            for entry in entries {
                let letter = try letters.readable(entry, in: snapshot)
                #expect(letter?.record == large)
            }
        }
        // Bytes are not copied, so one transaction moves all.
        try edit(store, ledger) { transaction throws(Status) in
            let step = try ledger.replay(id, after: nil, in: transaction, limit: 9, bytesMax: 1)
            #expect(step.count == 3 && step.last == nil)
        }
        #expect(ledger.pending(id) == 3 && ledger.deadLetterCount(id) == 0)
        #expect(try rows(store, EventKeys.body) == pieces && problems(store) == [])
        let queue = try #require(ledger.queue(of: id))
        for event in events {
            let record = try reading(store) { try queue.record(of: event, in: $0) }
            #expect(record == large)
        }
        let delivered = try settlement(events, at: 6, areDead: false)
        try edit(store, ledger) { transaction throws(Status) in
            try ledger.settle(delivered, of: id, in: transaction)
        }
        #expect(try rows(store, EventKeys.body) == 0 && problems(store) == [])
    }

    @Test func aRecordWithoutOneOfItsPiecesIsDamaged() throws {
        let (store, id) = (MemoryStore(), TriggerID(name: "t"))
        let ledger = try opened(store)
        let event = Delivery.Event(version: 1, key: [7])
        let large = QueuedEvent(author: Array(repeating: 1, count: 2000)).bytes
        try edit(store, ledger) { transaction throws(Status) in
            try ledger.put(event, large, for: id, in: transaction)
        }
        let dead = try settlement([event], at: 5, areDead: true, large)
        try edit(store, ledger) { transaction throws(Status) in try ledger.settle(dead, of: id, in: transaction) }
        try store.write { transaction throws(Status) in
            let pieces = try transaction.scan(.meta, EventBodies.all, reverse: true, values: false)
            #expect(try pieces.next())
            let last = pieces.key
            pieces.close()
            try transaction.delete(.meta, last)
        }
        #expect(try problems(store) == ["meta: 1 records of trigger 1 are not complete"])
        let letters = try #require(ledger.deadLetters(of: id))
        let entry = DeadLetters.Entry(time: 5, event: event)
        let letter = try reading(store) { try letters.readable(entry, in: $0) }
        #expect(letter == nil)
        try edit(store, ledger) { transaction throws(Status) in
            let step = try ledger.replay(id, after: nil, in: transaction, limit: 9, bytesMax: 1)
            #expect(step.count == 0 && step.seen == 1)
        }
        #expect(ledger.deadLetterCount(id) == 1 && ledger.pending(id) == 0)
    }

    /// As earlier versions have stored it.
    @Test func aLargeDeadLetterInOneRowGetsABodyWhenItIsReplayed() throws {
        let (store, id) = (MemoryStore(), TriggerID(name: "t"))
        let ledger = try opened(store)
        let event = Delivery.Event(version: 1, key: [7])
        let large = QueuedEvent(author: Array(repeating: 1, count: 5000)).bytes
        try edit(store, ledger) { transaction throws(Status) in
            try ledger.put(event, Self.record, for: id, in: transaction)
        }
        let dead = try settlement([event], at: 5, areDead: true)
        try edit(store, ledger) { transaction throws(Status) in try ledger.settle(dead, of: id, in: transaction) }
        let letters = try #require(ledger.deadLetters(of: id))
        let letter = DeadLetter(attempts: 1, failure: DeliveryFailure(.timeout, ""), record: large)
        try store.write { transaction throws(Status) in
            try letters.put(letter, DeadLetters.Entry(time: 5, event: event), in: transaction)
        }
        try edit(store, ledger) { transaction throws(Status) in
            _ = try ledger.replay(id, after: nil, in: transaction, limit: 9, bytesMax: 1)
        }
        let queue = try #require(ledger.queue(of: id))
        let record = try reading(store) { try queue.record(of: event, in: $0) }
        #expect(record == large)
        #expect(try rows(store, EventKeys.body) == 6 && problems(store) == [])
    }

    // MARK: Steps

    private struct Waiting: TriggerSteps {
        let isEnough: @Sendable () -> Bool
        var count: Int { 0 }

        func step() throws(Status) -> Bool { !isEnough() }
    }

    /// Otherwise the first one would never end.
    @Test func stepsOfLongRequestsAlternate() async throws {
        let service = try TriggerService(TriggerService.Configuration())
        let (ended, isEnding) = (SharedValue(Atomic(0)), SharedValue(Atomic(false)))
        service.background(
            Waiting {
                ended.value.load(ordering: .acquiring) == 2 || isEnding.value.load(ordering: .relaxed)
            }
        ) { _ in ended.value.add(10, ordering: .acquiringAndReleasing) }
        service.background(Waiting { true }) { _ in ended.value.add(1, ordering: .acquiringAndReleasing) }
        service.longBackground { ended.value.add(1, ordering: .acquiringAndReleasing) }
        #expect(await eventually { ended.value.load(ordering: .acquiring) == 12 })
        isEnding.value.store(true, ordering: .relaxed)
        service.stop()
    }
}
