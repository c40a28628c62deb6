import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthTriggers

/// Commits of a database, and what an endpoint gets of them.
struct DocumentEventDeliveryTests {
    private final class Observer: EventObserver {
        let settled = Mutex<[Delivery.Settled]>([])
        func answered(_ id: EventDispatcher.RouteID, _ event: Delivery.Event, _ answer: Delivery.Answer) {}
        func settled(_ id: EventDispatcher.RouteID, _ settled: Delivery.Settled) {
            self.settled.withLock { $0.append(settled) }
        }
    }

    private let store = MemoryStore()
    private let name = DatabaseName(project: "p")

    private func definition(_ url: String, _ more: String = "") throws -> TriggerDefinition {
        let json = Array(
            """
            {"event": "google.cloud.firestore.document.v1.written", "document": "c/{id}", "url": "\(url)",
             "retry": {"minBackoff": "1ms", "maxBackoff": "5ms"}, "content": "json"\(more)}
            """.utf8)
        return try TriggerDefinition(
            name: "t", try ConfigurationValue(parsing: json, file: "f"), source: .file, defaultProject: "p"
        ) { (_) throws(Status) in [] }
    }

    /// A database whose commits are delivered.
    private struct Running {
        let database: Database
        let events: DatabaseEvents
        let dispatcher: EventDispatcher
        let sender: EventSender
        let observer: Observer

        /// The store, which is in memory, stays open.
        func stop() {
            dispatcher.stop()
            sender.close()
            database.setRecorder(nil)
        }

        func waitUntilDelivered() async { #expect(await eventually { events.pending("t") == 0 }) }
    }

    private func run(_ definition: TriggerDefinition) throws -> Running {
        let database = try Database(name: name, store: store)
        let sender = EventSender()
        let observer = Observer()
        let dispatcher = EventDispatcher(sender: sender, observer: observer)
        let id = EventDispatcher.RouteID(trigger: "t", database: "p")
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        struct Recorder {
            weak var events: DatabaseEvents?
        }
        let recorder = SharedValue(Mutex(Recorder()))
        let events = try DatabaseEvents(
            DatabaseEvents.Triggers([definition]), in: snapshot
        ) { [weak dispatcher, weak database] _ in
            dispatcher?.notify(id) { [weak database] in
                guard let database, let events = recorder.value.withLock({ $0.events }) else { return nil }
                return DocumentEventSource(definition, database: database, events: events, location: "us-central1")
            }
        }
        recorder.value.withLock { $0.events = events }
        database.setRecorder(events)
        try dispatcher.start()
        dispatcher.set("t", EventDispatcher.Trigger(target: definition.target, terms: definition.terms))
        dispatcher.notify(id) {
            DocumentEventSource(definition, database: database, events: events, location: "us-central1")
        }
        return Running(
            database: database, events: events, dispatcher: dispatcher, sender: sender, observer: observer)
    }

    private func commit(_ writes: [Write], _ database: Database, by author: EventAuthor = .system) throws -> Int64 {
        let outcome = Promise<Result<CommitOutcome, Status>>()
        database.commit(writes, requester: .server, author: author.stored) { outcome.give($0) }
        return try outcome.wait().get().commitTime.microseconds
    }

    private func set(_ path: String, _ number: Int64) -> Write {
        Write(
            document: resource(path),
            operation: .update(fields: MapValue([MapValue.Field(name: "n", value: .integer(number))]), mask: nil),
            transforms: [], precondition: .none)
    }

    private func delete(_ path: String) -> Write {
        Write(document: resource(path), operation: .delete, precondition: .none)
    }

    private func resource(_ path: String) -> ResourceName {
        ResourceName(database: name, path: ResourcePath(path.split(separator: "/").map(String.init)))
    }

    /// The requests that an endpoint has acknowledged, in their order.
    private final class Received: Sendable {
        private let requests = Mutex<[String]>([])
        func append(_ request: String) { requests.withLock { $0.append(request) } }
        var all: [String] { requests.withLock { $0 } }

        /// For each document the numbers of its states before and after.
        var changes: [String: [String]] {
            var changes: [String: [String]] = [:]
            for request in all {
                changes[Self.header("ce-document", request), default: []].append(Self.change(request))
            }
            return changes
        }

        static func header(_ name: String, _ request: String) -> String {
            let line = request.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name + ":") }
            return line.map { String($0.dropFirst(name.utf8.count + 1).drop { $0 == " " }) } ?? ""
        }

        private static func change(_ request: String) -> String {
            func number(_ member: String) -> String {
                let parts = request.components(separatedBy: "\"\(member)\":")
                guard parts.count > 1 else { return "-" }
                return parts[1].components(separatedBy: "\"integerValue\":\"")[1].prefix { $0 != "\"" } + ""
            }
            return number("oldValue") + ">" + number("value")
        }
    }

    private static let acknowledgement = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    private static let refusal = "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"

    @Test func aCommitBecomesEventsOfWhatItChanged() async throws {
        let received = Received()
        let endpoint = ScriptedEndpoint { connection, _ in
            received.append(connection.request)
            connection.write(Self.acknowledgement)
            return true
        }
        let running = try run(try definition(endpoint.url))
        defer { running.stop() }
        let database = running.database
        _ = try commit([set("c/a", 1), set("other/a", 1), set("c/a/sub/b", 1)], database)
        _ = try commit([set("c/a", 2), set("c/a", 3)], database)
        _ = try commit([set("c/a", 3)], database)
        _ = try commit([delete("c/a"), delete("c/none")], database)
        _ = try commit([set("c/b", 1), delete("c/b")], database)
        await running.waitUntilDelivered()
        #expect(received.changes == ["c/a": ["->1", "1>3", "3>-"]])
        #expect(received.all.allSatisfy { Received.header("x-hearth-attempt", $0) == "1" })
        #expect(Set(received.all.map { Received.header("ce-id", $0) }).count == 3)
    }

    @Test(arguments: [UInt64(1), 2]) func everyEventArrivesInTheOrderOfItsDocument(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let received = Received()
        let endpoint = ScriptedEndpoint { connection, number in
            if number % 5 == 4 {
                connection.write(Self.refusal)
                return true
            }
            // The answer of each seventh is lost.
            if number % 7 == 6 { return false }
            received.append(connection.request)
            connection.write(Self.acknowledgement)
            return true
        }
        var running = try run(try definition(endpoint.url))
        var expected: [String: [String]] = [:]
        var present: [String: Int64] = [:]
        for number in 0..<300 {
            let path = "c/d\(random.chance(40) ? 0 : random.below(12))"
            let isDeleted = random.chance(20)
            _ = try commit([isDeleted ? delete(path) : set(path, Int64(number))], running.database)
            if !isDeleted || present[path] != nil {
                let before = present[path].map(String.init) ?? "-"
                expected[path, default: []].append(before + ">" + (isDeleted ? "-" : "\(number)"))
            }
            present[path] = isDeleted ? nil : Int64(number)
            // Everything but the store is gone.
            if number == 150 {
                running.stop()
                running = try run(try definition(endpoint.url))
            }
        }
        await running.waitUntilDelivered()
        running.stop()
        // What the restart interrupted may have come twice, in order.
        for (path, changes) in expected {
            var rest = changes[...]
            for change in received.changes[path] ?? [] { if rest.first == change { rest.removeFirst() } }
            #expect(rest.isEmpty, "\(path) lacks \(rest.first ?? "")")
        }
        #expect(received.changes.keys.sorted() == expected.keys.sorted())
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        #expect(try snapshot.count(.meta, EventQueue.all, limit: .max) == 0)
    }

    /// Old states are deleted but for those that an event needs.
    @Test func whatWaitsKeepsItsHistory() async throws {
        let clock = StoppedClock()
        let database = try Database(name: name, store: store, clock: clock)
        defer { database.close() }
        let snapshot = try store.snapshot()
        let events = try DatabaseEvents(
            DatabaseEvents.Triggers([try definition("http://127.0.0.1:9/")]), in: snapshot
        ) { _ in }
        snapshot.close()
        database.setRecorder(events)
        _ = try commit([set("other/x", 1)], database)
        clock.advance(seconds: 10)
        let version = try commit([set("c/a", 1)], database)
        clock.advance(seconds: 8000)
        _ = try commit([set("c/a", 2)], database)
        try collect(database)
        #expect(try feedCount() == 2)
        let source = DocumentEventSource(
            try definition("http://127.0.0.1:9/"), database: database, events: events, location: "l", clock: clock)
        #expect(source.access() == .open)
        let event = try #require(try source.events(after: nil, countMax: 9).first)
        #expect(event.version == version)
        let request = try #require(try source.request(for: event))
        #expect(String(decoding: request.body, as: UTF8.self).contains("\"integerValue\":\"1\""))
        try settle(source, [event])
        try collect(database)
        #expect(try feedCount() == 1 && events.pending("t") == 1)
        // Everything is deleted: no event is left.
        let cleared = Promise<Result<Void, Status>>()
        database.clear { cleared.give($0) }
        try cleared.wait().get()
        #expect(try source.request(for: Delivery.Event(version: version, key: event.key)) == nil)
        #expect(events.pending("t") == 0)
    }

    private func settle(_ source: DocumentEventSource, _ settled: [Delivery.Event]) throws {
        let done = Promise<Result<Void, Status>>()
        _ = source.settle(settled.map { Delivery.Settled(event: $0, result: .delivered) }) { done.give($0) }
        try done.wait().get()
    }

    private func collect(_ database: Database) throws {
        let done = Promise<Result<Bool, Status>>()
        database.collectGarbage { done.give($0) }
        _ = try done.wait().get()
    }

    private func feedCount() throws -> Int {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try snapshot.count(.feed, KeyRange(lower: [], upper: nil), limit: .max)
    }

    // MARK: What is stored

    @Test func recordsAreReadAsTheyWereWritten() throws {
        let document = StoredDocument(createVersion: 1, updateVersion: 2, fields: [1, 2, 3])
        for record in [
            QueuedEvent(author: []), QueuedEvent(author: [1, 2, 3]),
            QueuedEvent(author: [9], states: QueuedEvent.States(before: document, after: nil)),
            QueuedEvent(author: [], states: QueuedEvent.States(before: nil, after: document)),
            QueuedEvent(author: [7], states: QueuedEvent.States(before: document, after: document)),
        ] {
            #expect(try QueuedEvent(record.bytes) == record)
            for count in 0..<record.bytes.count - (record.states?.after == nil ? 0 : 19) {
                #expect(throws: Status.self) { try QueuedEvent(Array(record.bytes.prefix(count))) }
            }
        }
        for author: EventAuthor in [
            .system, .nobody, .administrator(name: "owner"),
            .user(id: "ü1", provider: "password", claims: "{\"sub\":\"x\"}"),
        ] {
            #expect(EventAuthor(stored: author.stored) == author)
        }
    }
}

extension String {
    fileprivate func components(separatedBy separator: String) -> [Substring] {
        var parts: [Substring] = []
        var rest = self[...]
        while let start = rest.indices.first(where: { rest[$0...].hasPrefix(separator) }) {
            parts.append(rest[..<start])
            rest = rest[start...].dropFirst(separator.count)
        }
        return parts + [rest]
    }
}

extension Substring {
    fileprivate func components(separatedBy separator: String) -> [Substring] {
        String(self).components(separatedBy: separator)
    }
}
