import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthTestSupport
import HearthTree
import HearthWire
import Synchronization
import Testing

@testable import HearthTreeStorage
@testable import HearthTriggers

/// Which trigger an event belongs to, when triggers are removed, made again, and changed.
struct TriggerIdentityTests {
    private let name = DatabaseName(project: "p")
    private static let nowhere = "http://127.0.0.1:9/"

    private func definition(
        _ name: String = "t", _ document: String = "c/{id}", event: String = "written", url: String = nowhere,
        isPaused: Bool = true
    ) throws -> TriggerDefinition {
        let json = """
            {"event": "google.cloud.firestore.document.v1.\(event)", "document": "\(document)", "url": "\(url)",
             "paused": \(isPaused)}
            """
        return try TriggerDefinition(
            name: name, try ConfigurationValue(parsing: Array(json.utf8), file: "f"), source: .api, defaultProject: "p"
        ) { (_) throws(Status) in [] }
    }

    private func service(_ definitions: [TriggerDefinition] = []) throws -> TriggerService {
        var configuration = TriggerService.Configuration()
        configuration.definitions = definitions
        return try TriggerService(configuration)
    }

    private func open(_ store: MemoryStore, _ service: TriggerService) throws -> Database {
        let database = try Database(name: name, store: store)
        try service.opened(database)
        return database
    }

    private func commit(_ path: String, _ number: Int? = 1, _ database: Database) throws {
        let outcome = Promise<Result<CommitOutcome, Status>>()
        let document = ResourceName(
            database: name, path: ResourcePath(path.split(separator: "/").map(String.init)))
        var operation = Write.Operation.delete
        if let number {
            let fields = MapValue([MapValue.Field(name: "n", value: .integer(Int64(number)))])
            operation = .update(fields: fields, mask: nil)
        }
        let write = Write(document: document, operation: operation, transforms: [], precondition: .none)
        database.commit([write], requester: .server, author: [1]) { outcome.give($0) }
        _ = try outcome.wait().get()
    }

    private func recordCount(_ store: MemoryStore) throws -> Int {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try ["q", "z", "y"].reduce(0) { count, mark in
            try count + snapshot.count(.meta, KeyRange(prefix: Array(mark.utf8)), limit: .max)
        }
    }

    // MARK: The same name

    @Test(arguments: [0, 1, 2000, 4001]) func aTriggerThatIsMadeAnewHasNothingOfItsPredecessor(count: Int) async throws
    {
        let store = MemoryStore()
        let service = try service([try definition()])
        let database = try open(store, service)
        defer { withExtendedLifetime(database) { service.stop() } }
        for number in 0..<min(count, 3) { try commit("c/d\(number)", 1, database) }
        // More than one step of the deletion.
        if count > 3 {
            let id = try #require(service.definition("t")).id
            let events = try #require(service.state.withLock { $0.databases[name]?.events })
            let done = Promise<Result<Void, Status>>()
            events.edit(
                database,
                { transaction throws(Status) in
                    for number in 3..<count {
                        let event = Delivery.Event(version: Int64(number), key: [1, 2])
                        try events.ledger.put(event, QueuedEvent(author: []).bytes, for: id, in: transaction)
                    }
                }, completion: { done.give($0) })
            try done.wait().get()
        }
        #expect(service.pending("t") == count)
        #expect(service.remove("t"))
        try service.set(try definition("t", "e/{id}"))
        for number in 0..<20 { try commit("e/d\(number)", 1, database) }
        #expect(service.pending("t") == 20)
        #expect(await eventually { try! recordCount(store) == 20 })
        #expect(service.pending("t") == 20)
        // The store knows the same.
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let ledger = try TriggerLedger(DocumentEventRecords.self, in: snapshot)
        #expect(ledger.ids == ["t"] && ledger.pending("t") == 20)
    }

    /// The database is closed while its trigger is removed and made again.
    @Test func aDatabaseThatWasClosedKeepsTriggersApart() async throws {
        let store = MemoryStore()
        let service = try service([try definition()])
        defer { service.stop() }
        var database: Database? = try open(store, service)
        for number in 0..<3 { try commit("c/d\(number)", 1, try #require(database)) }
        database?.setRecorder(nil)
        database = nil
        #expect(service.pending("t") == 3)
        #expect(service.remove("t"))
        try service.set(try definition())
        #expect(service.pending("t") == 0)
        database = try open(store, service)
        try commit("c/new", 1, try #require(database))
        #expect(service.pending("t") == 1)
        #expect(await eventually { try! recordCount(store) == 1 })
    }

    /// A crash may leave a number without a name.
    @Test func whatHasNoNameIsDeleted() async throws {
        let store = MemoryStore()
        var service = try service([try definition()])
        var database = try open(store, service)
        for number in 0..<3 { try commit("c/d\(number)", 1, database) }
        service.stop()
        database.setRecorder(nil)
        try store.write { transaction throws(Status) in
            try transaction.delete(.meta, [EventKeys.number] + Array("t".utf8))
        }
        service = try self.service([try definition()])
        database = try open(store, service)
        defer { withExtendedLifetime(database) { service.stop() } }
        #expect(service.pending("t") == 0)
        #expect(await eventually { try! recordCount(store) == 0 })
    }

    @Test func aDefinitionForTheOtherProductIsAnotherTrigger() async throws {
        let store = MemoryStore()
        let service = try service([try definition()])
        let database = try open(store, service)
        defer { withExtendedLifetime(database) { service.stop() } }
        for number in 0..<3 { try commit("c/d\(number)", 1, database) }
        try service.set(try treeDefinition("t", "n/{id}"))
        #expect(service.pending("t") == 0)
        #expect(await eventually { try! recordCount(store) == 0 })
        try service.set(try definition())
        try commit("c/e", 1, database)
        #expect(service.pending("t") == 1)
    }

    @Test func aDefinitionForTheOtherProductIsAnotherTriggerAlsoAfterARestart() async throws {
        let store = MemoryStore()
        do {
            let service = try service([try definition()])
            let database = try open(store, service)
            for number in 0..<3 { try commit("c/d\(number)", 1, database) }
            #expect(service.pending("t") == 3)
            service.stop()
            database.setRecorder(nil)
        }
        let service = try service([try treeDefinition("t", "n/{id}")])
        let database = try open(store, service)
        defer { withExtendedLifetime(database) { service.stop() } }
        #expect(await eventually { try! recordCount(store) == 0 })
        #expect(service.pending("t") == 0)
    }

    @Test func aDefinitionThatWasReplacedIsNotRemoved() throws {
        let service = try service([try definition()])
        defer { service.stop() }
        let former = try #require(service.definition("t"))
        try service.set(try definition("t", "e/{id}"))
        let present = try #require(service.definition("t"))
        #expect(present.id == former.id && !service.remove("t", revision: former.revision))
        #expect(service.definition("t") == present && service.remove("t", revision: present.revision))
    }

    // MARK: Many at once

    @Test func manyTriggersChangeAtOnceOrNotAtAll() async throws {
        let store = MemoryStore()
        let service = try service([try definition("a"), try definition("b"), try definition("c")])
        let database = try open(store, service)
        defer { withExtendedLifetime(database) { service.stop() } }
        for number in 0..<3 { try commit("c/d\(number)", 1, database) }
        let before = service.definitions
        let many = try (0..<TriggerService.countMax).map { try definition("n\($0)", "e/{id}") }
        #expect(throws: Status.self) { try service.change(set: many, remove: ["a"]) }
        #expect(service.definitions == before && ["a", "b", "c"].allSatisfy { service.pending($0) == 3 })
        // Some end, others have another pattern or product, and some are new.
        try service.change(
            set: [try definition("b", "e/{id}"), try treeDefinition("c", "n/{id}")] + many.dropLast(2),
            remove: ["a", "unknown"])
        #expect(service.definitions.count == TriggerService.countMax)
        #expect(["a", "b", "c"].map { service.pending($0) } == [0, 3, 0])
        #expect(service.definition("b")?.id == before[1].id && service.definition("c")?.id != before[2].id)
        #expect(await eventually { try! recordCount(store) == 3 })
        try commit("c/x", 1, database)
        try commit("e/x", 1, database)
        #expect(service.pending("b") == 4 && service.pending("n0") == 1 && service.pending("n497") == 1)
    }

    @Test func databasesShareWhatIsMadeOfTheSameDefinitions() throws {
        let made = Atomic(0)
        let definitions = try (0..<100).map { try definition("t\($0)", "c/{id}") }
        let other = try treeDefinition("one", "n", more: ",\"instance\":\"d7\"")
        var scopes = TriggerScopes(definitions + [other]) { those in
            made.add(1, ordering: .relaxed)
            return those.map(\.name)
        }
        for number in 0..<120 {
            let namespace = "d\(number)"
            let names = scopes.made { $0.type.product == .firestore || $0.isFor(namespace: namespace) }
            #expect(names == definitions.map(\.name) + (number == 7 ? ["one"] : []))
        }
        #expect(made.load(ordering: .relaxed) == 2)
        #expect(scopes.made { _ in false }.isEmpty)
    }

    // MARK: Another type

    @Test func eventsThatTheTypeDoesNotWantAnyMoreAreNotSent() async throws {
        let received = Mutex<[String]>([])
        let endpoint = ScriptedEndpoint { connection, _ in
            received.withLock { $0.append(connection.request) }
            connection.write("HTTP/1.1 204 Yes\r\n\r\n")
            return true
        }
        let store = MemoryStore()
        let service = try service([try definition("t", url: endpoint.url)])
        let database = try open(store, service)
        defer { withExtendedLifetime(database) { service.stop() } }
        for number in 0..<4 { try commit("c/d", number, database) }
        try commit("c/d", nil, database)
        #expect(service.pending("t") == 5)
        try service.set(try definition("t", event: "deleted", url: endpoint.url, isPaused: false))
        #expect(await eventually { service.pending("t") == 0 })
        let requests = received.withLock { $0 }
        #expect(requests.count == 1 && requests[0].contains("ce-type: google.cloud.firestore.document.v1.deleted"))
        #expect(service.deadLetterCount("t") == 0)
    }

    @Test func locationsOfATypeThatIsNotWantedAnyMoreAreNotSent() throws {
        let definition = try treeDefinition("t", "n")
        let tree = try EventTree([definition])
        defer { tree.database.close() }
        for value in ["1", "2", "null"] { try tree.put("n", value) }
        let source = tree.source(definition)
        source.definition.change(try treeDefinition("t", "n", "google.firebase.database.ref.v1.deleted"))
        let events = try source.events(after: nil, countMax: 9)
        #expect(try events.map { try source.request(for: $0) != nil } == [false, false, true])
    }

    // MARK: The ledger

    private func ledger(_ store: MemoryStore, _ records: any EventRecords.Type) throws -> TriggerLedger {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try TriggerLedger(records, in: snapshot)
    }

    private func settlement(
        _ events: [Delivery.Event], _ definition: TriggerDefinition, at time: Int64, _ record: [UInt8]
    ) throws -> EventSettlement {
        let settled = events.map {
            Delivery.Settled(event: $0, result: .dead(attempts: 1, DeliveryFailure(.timeout, "")))
        }
        return try EventSettlement(settled, of: definition, at: time) { _ in record }
    }

    @Test func onlyWhatIsInTheQueueBecomesADeadLetter() throws {
        let store = MemoryStore()
        let ledger = try ledger(store, DocumentEventRecords.self)
        let definition = try definition()
        let events = (1...3).map { Delivery.Event(version: $0, key: [7]) }
        let record = QueuedEvent(author: []).bytes
        try store.write { transaction throws(Status) in
            for event in events { try ledger.put(event, record, for: "t", in: transaction) }
            #expect(ledger.pending("t") == 0 && ledger.presentOldest == 1)
        }
        #expect(ledger.ended(isDurable: true) == ["t"] && ledger.pending("t") == 3)
        // Twice, as after a failure of the store whose transaction was durable after all.
        for _ in 0..<2 {
            let settlement = try settlement(Array(events[..<2]), definition, at: 10, record)
            try store.write { transaction throws(Status) in
                try ledger.settle(settlement, of: definition.id, in: transaction)
            }
            #expect(ledger.ended(isDurable: true).isEmpty)
            #expect(ledger.pending("t") == 1 && ledger.deadLetterCount("t") == 2 && ledger.oldest("t") == 3)
        }
        try store.write { transaction throws(Status) in try ledger.clear(in: transaction) }
        _ = ledger.ended(isDurable: true)
        let last = try settlement([events[2]], definition, at: 11, record)
        try store.write { transaction throws(Status) in
            try ledger.settle(last, of: definition.id, in: transaction)
        }
        _ = ledger.ended(isDurable: true)
        #expect(try !ledger.hasAny && recordCount(store) == 0)
    }

    @Test func aTransactionThatIsUndoneCountsForNothing() throws {
        let store = MemoryStore()
        let ledger = try ledger(store, DocumentEventRecords.self)
        do throws(Status) {
            try store.write { transaction throws(Status) in
                try ledger.put(Delivery.Event(version: 1, key: [7]), [1], for: "t", in: transaction)
                throw .unavailable("")
            }
        } catch {}
        #expect(ledger.ended(isDurable: false).isEmpty)
        #expect(ledger.ids.isEmpty && ledger.presentOldest == nil)
    }

    /// Of each product, damaged in the queue's part and in the letter's own.
    @Test(arguments: [true, false]) func aDamagedDeadLetterKeepsNoOtherFromReplay(ofTrees: Bool) throws {
        let store = MemoryStore()
        let ledger = try ledger(
            store, ofTrees ? TreeEventRecords.self as any EventRecords.Type : DocumentEventRecords.self)
        let record =
            ofTrees
            ? TreeDeadLetter(
                record: TreeEventRecord(kind: .created, author: .own([]), content: .data([])), author: [1]
            ).bytes : QueuedEvent(author: [1]).bytes
        func entry(_ number: Int64) -> DeadLetters.Entry {
            DeadLetters.Entry(time: number, event: Delivery.Event(version: number, key: [7]))
        }
        try store.write { transaction throws(Status) in
            // A number is given with the first event.
            try ledger.put(entry(9).event, [1], for: "t", in: transaction)
        }
        _ = ledger.ended(isDurable: true)
        let letters = try #require(ledger.deadLetters(of: "t"))
        try store.write { transaction throws(Status) in
            for number: Int64 in 1...4 {
                let letter = DeadLetter(
                    attempts: 1, failure: DeliveryFailure(.cut, ""), record: number == 2 ? [9] : record)
                try letters.put(letter, entry(number), in: transaction)
            }
        }
        try store.write { transaction throws(Status) in
            var (count, last): (Int, DeadLetters.Entry?) = (0, nil)
            repeat {
                let step = try ledger.replay("t", after: last, in: transaction, limit: 2, bytesMax: 1000)
                (count, last) = (count + step.count, step.last)
            } while last != nil
            #expect(count == 3)
            #expect(try letters.entries(after: nil, countMax: 9, in: transaction) == [entry(2)])
        }
        _ = ledger.ended(isDurable: true)
        #expect(ledger.pending("t") == 4 && ledger.oldest("t") == 1)
    }

    // MARK: Figures

    /// Each second failure and success of many is no news.
    @Test func aFunctionThatFailsForSomeEventsIsReportedOnceInAWhile() {
        var reports = FailureReports()
        let pause = FailureReports.pauseNanoseconds
        var (failures, successes) = (0, 0)
        for number in 0..<1000 {
            if reports.failed(pause + UInt64(number) * pause / 400) { failures += 1 }
            if reports.succeeded() { successes += 1 }
        }
        #expect(failures == 3 && successes == 3)
        // One that began meanwhile and goes on.
        #expect(!reports.failed(pause * 3) && !reports.failed(pause * 4 - 1))
        #expect(reports.failed(pause * 4) && !reports.failed(pause * 6))
        let ends = [reports.succeeded(), reports.succeeded()]
        #expect(ends == [true, false])
    }

    @Test func whatEndsLateIsNotCounted() throws {
        let journal = TriggerJournal(log: Log(), clock: SystemClock())
        let event = Delivery.Event(version: 1, key: [])
        func end(_ serial: UInt64) {
            let route = EventDispatcher.RouteID(trigger: "t", database: "d", serial: serial)
            journal.answered(route, event, .acknowledged)
            journal.settled(route, Delivery.Settled(event: event, result: .delivered))
        }
        journal.begin(TriggerID(name: "t", serial: 1))
        end(1)
        #expect(journal.figures(TriggerID(name: "t", serial: 1)).delivered == 1)
        journal.end(TriggerID(name: "t", serial: 1))
        journal.begin(TriggerID(name: "t", serial: 2))
        end(1)
        for serial: UInt64 in 1...2 {
            let figures = journal.figures(TriggerID(name: "t", serial: serial))
            #expect(figures.delivered == 0 && figures.attemptsOK == 0)
        }
    }
}
