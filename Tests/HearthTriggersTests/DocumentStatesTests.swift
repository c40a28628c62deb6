import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthModel
import HearthWire
import Synchronization
import HearthTestSupport
import Testing

@testable import HearthTriggers

struct DocumentStatesTests {
    private let store = MemoryStore()
    private let database: Database

    init() throws { database = try Database(name: DatabaseName(project: "p"), store: store) }

    private func commit(_ writes: [Write]) throws -> Int64 {
        let done = Latch()
        let result = Mutex<Result<CommitOutcome, Status>?>(nil)
        database.commit(writes) { outcome in
            result.withLock { $0 = outcome }
            done.open()
        }
        done.wait()
        return try #require(result.withLock { $0 }).get().commitTime.microseconds
    }

    private func name(_ id: String) -> ResourceName {
        ResourceName(database: DatabaseName(project: "p"), path: ResourcePath(["c", id]))
    }

    private func set(_ id: String, _ number: Int64) -> Write {
        Write(
            document: name(id),
            operation: .update(
                fields: MapValue([MapValue.Field(name: "n", value: .integer(number))]), mask: nil),
            transforms: [], precondition: .none)
    }

    private func delete(_ id: String) -> Write {
        Write(document: name(id), operation: .delete, precondition: .none)
    }

    private struct Known {
        let event: Delivery.Event
        let before: StoredDocument?
        let after: StoredDocument?
    }

    /// Commits at random, of few documents, so that each has a long chain.
    private func history(_ count: Int, _ random: inout SeededGenerator) throws -> [Known] {
        var history: [Known] = []
        for number in 0..<count {
            let ids = Set(
                (0..<Int.random(in: 1...3, using: &random)).map { _ in
                    Bool.random(using: &random) ? "hot" : "d\(Int.random(in: 0..<8, using: &random))"
                })
            let before = try view { snapshot throws(Status) in
                try ids.map { id throws(Status) in (id, try snapshot.document(DocumentKey.encode(name(id).path))) }
            }
            let version = try commit(
                ids.map { Int.random(in: 0..<4, using: &random) == 0 ? delete($0) : set($0, Int64(number)) })
            for (id, before) in before {
                let key = DocumentKey.encode(name(id).path)
                let after = try view { snapshot throws(Status) in try snapshot.document(key) }
                if before?.updateVersion == after?.updateVersion { continue }
                history.append(
                    Known(event: Delivery.Event(version: version, key: key), before: before, after: after))
            }
        }
        return history
    }

    private func view<Result>(_ body: (any Snapshot) throws(Status) -> Result) throws(Status) -> Result {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try body(snapshot)
    }

    @Test(arguments: 0..<8) func statesOfThePastAreFound(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // Little memory for chains in half of the runs.
        var states = DocumentStates(versionsMax: seed % 2 == 0 ? 1 << 20 : 5)
        var pending: [Known] = []
        for _ in 0..<12 {
            pending += try history(20, &random)
            for _ in 0..<Int.random(in: 0...pending.count, using: &random) {
                let known = pending.removeFirst()
                let found = try view { snapshot throws(Status) in try states.states(of: known.event, in: snapshot) }
                #expect(found.before == known.before && found.after == known.after)
                // A second attempt of the same event.
                let again = try view { snapshot throws(Status) in try states.states(of: known.event, in: snapshot) }
                #expect(again.before == known.before && again.after == known.after)
            }
        }
        for known in pending {
            let found = try view { snapshot throws(Status) in try states.states(of: known.event, in: snapshot) }
            #expect(found.before == known.before && found.after == known.after)
        }
        // Another trigger, which is behind.
        if let first = pending.first {
            let found = try view { snapshot throws(Status) in try states.states(of: first.event, in: snapshot) }
            #expect(found.after == first.after)
        }
    }

    @Test func aChangeThatTheFeedDoesNotHaveIsAnError() throws {
        let version = try commit([set("a", 1)])
        var states = DocumentStates()
        let key = DocumentKey.encode(name("a").path)
        for wrong in [version - 1, version + 1] {
            let event = Delivery.Event(version: wrong, key: key)
            #expect(throws: Status.self) {
                try view { snapshot throws(Status) in _ = try states.states(of: event, in: snapshot) }
            }
        }
    }

    /// A snapshot that counts what is read of it.
    private final class Counted: Snapshot {
        let base: any Snapshot
        var count = 0

        init(_ base: any Snapshot) { self.base = base }

        func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
            count += 1
            return try base.get(keyspace, key)
        }

        func scan(
            _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
        ) throws(Status) -> any KeyCursor {
            count += 1
            return try base.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
        }

        func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
            count += 1
            return try base.count(keyspace, range, limit: limit)
        }

        func close() { base.close() }
    }

    /// Documents with more changes than may be remembered, whose events alternate: each event costs a few steps all the same.
    @Test func longHistoriesCostAFewStepsAnEvent() throws {
        var events: [(event: Delivery.Event, number: Int64)] = []
        let ids = ["a", "b", "c", "d"]
        for number in Int64(0)..<700 {
            let version = try commit(ids.map { set($0, number) })
            for id in ids {
                events.append((Delivery.Event(version: version, key: DocumentKey.encode(name(id).path)), number))
            }
        }
        // A quarter of all changes.
        var states = DocumentStates(versionsMax: 700)
        let snapshot = Counted(try store.snapshot())
        defer { snapshot.close() }
        for (event, number) in events {
            let found = try states.states(of: event, in: snapshot)
            #expect(found.after?.updateVersion == event.version && (found.before == nil) == (number == 0))
        }
        #expect(snapshot.count < 6 * events.count, "\(snapshot.count) reads")
    }

    // MARK: The queue

    @Test(arguments: 0..<6) func theQueueIsReadInItsOrder(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let queue = EventQueue(trigger: 7)
        var events: [Delivery.Event] = []
        for version in 1...60 {
            let ids = Set(
                (0..<Int.random(in: 1...4, using: &random)).map { _ in Int.random(in: 0..<6, using: &random) })
            events += ids.sorted().map {
                Delivery.Event(version: Int64(version), key: DocumentKey.encode(name("d\($0)").path))
            }
        }
        try store.write { transaction throws(Status) in
            for event in events {
                try queue.put(event, [1], in: transaction)
                // Others' records lie on both sides.
                try EventQueue(trigger: 6).put(event, [2], in: transaction)
                try EventQueue(trigger: 8).put(event, [3], in: transaction)
            }
        }
        #expect(try view { snapshot throws(Status) in try queue.count(in: snapshot) } == events.count)
        var read: [Delivery.Event] = []
        while true {
            let part = try view { snapshot throws(Status) in
                try queue.events(after: read.last, countMax: Int.random(in: 1...9, using: &random), in: snapshot)
            }
            if part.isEmpty { break }
            read += part
        }
        #expect(read == events)
        // From the first event of a version on, whether that is there or not.
        for version in Int64(0)...61 {
            let expected = events.first { $0.version >= version }
            try view { snapshot throws(Status) in
                let start = Delivery.Event(version: version, key: [])
                #expect(try queue.events(after: start, countMax: 1, in: snapshot).first == expected)
                #expect(try queue.first(from: version, in: snapshot) == expected?.version)
            }
        }
        try store.write { transaction throws(Status) in
            for event in events.prefix(11) { #expect(try queue.remove(event, in: transaction) == 1) }
        }
        let rest = try view { snapshot throws(Status) in try queue.events(after: nil, countMax: .max, in: snapshot) }
        #expect(rest == Array(events.dropFirst(11)))
        #expect(try view { snapshot throws(Status) in try EventQueue(trigger: 6).count(in: snapshot) } == events.count)
    }
}
