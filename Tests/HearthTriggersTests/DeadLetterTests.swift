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

/// The service of triggers over one database: what is given up, and sent again.
struct DeadLetterTests {
    private let name = DatabaseName(project: "p")

    private final class Bench: Sendable {
        let service: TriggerService
        let database: Database
        let isDeleted = SharedValue(Mutex(false))

        init(
            _ definitions: [TriggerDefinition], _ store: MemoryStore, _ name: DatabaseName,
            clock: any Clock = SystemClock()
        ) throws {
            var configuration = TriggerService.Configuration()
            configuration.definitions = definitions
            let service = try TriggerService(configuration, clock: clock)
            let database = try Database(name: name, store: store, clock: clock)
            try service.opened(database)
            service.start(
                TriggerDirectory(
                    names: { () throws(Status) in [name] },
                    exists: { [isDeleted] _ throws(Status) in !isDeleted.value.withLock { $0 } },
                    open: { _, completion in completion(.success(database)) }))
            self.service = service
            self.database = database
        }

        func stop() {
            service.stop()
            database.setRecorder(nil)
        }
    }

    private func definition(_ url: String, _ more: String = "") throws -> TriggerDefinition {
        let json = Array(
            """
            {"event": "google.cloud.firestore.document.v1.written", "document": "c/{id}", "url": "\(url)"\(more)}
            """.utf8)
        return try TriggerDefinition(
            name: "t", try ConfigurationValue(parsing: json, file: "f"), source: .file, defaultProject: "p"
        ) { (_) throws(Status) in [] }
    }

    private func commit(_ number: Int, _ bench: Bench) throws -> Timestamp {
        let outcome = Promise<Result<CommitOutcome, Status>>()
        let write = Write(
            document: ResourceName(database: name, path: ResourcePath(["c", "d\(number)"])),
            operation: .update(
                fields: MapValue([MapValue.Field(name: "n", value: .integer(Int64(number)))]), mask: nil),
            transforms: [], precondition: .none)
        bench.database.commit([write], requester: .server, author: [1]) { outcome.give($0) }
        return try outcome.wait().get().commitTime
    }

    @Test func whatIsGivenUpIsKeptAndSentAgainWithItsID() async throws {
        let refusing = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let store = MemoryStore()
        let bench = try Bench(
            [try definition(refusing.url, ", \"retry\": {\"minBackoff\": \"1ms\", \"maxAttempts\": 2}")], store, name)
        for number in 0..<3 { _ = try commit(number, bench) }
        #expect(await eventually { bench.service.deadLetterCount("t") == 3 })
        #expect(bench.service.pending("t") == 0 && bench.service.oldestPending("t") == nil)
        let letters = try bench.service.deadLetters("t", after: nil, limit: 10)
        #expect(letters.map(\.document).sorted() == (0..<3).map { name.string + "/documents/c/d\($0)" })
        #expect(letters.allSatisfy { $0.attempts == 2 && $0.failure.kind == .status(500) && $0.event != nil })
        // Page by page.
        let first = try bench.service.deadLetters("t", after: nil, limit: 2)
        let second = try bench.service.deadLetters("t", after: first.last?.id, limit: 2)
        #expect((first + second).map(\.id) == letters.map(\.id))
        #expect(throws: Status.self) { try bench.service.deadLetters("t", after: "x", limit: 2) }
        bench.stop()
        // After a restart, with an endpoint that works.
        let ids = Mutex<[String]>([])
        let taking = ScriptedEndpoint { connection, _ in
            let id = connection.request.split(separator: "\r\n").first { $0.hasPrefix("ce-id: ") }?.dropFirst(7)
            ids.withLock { $0.append(String(id ?? "")) }
            connection.write("HTTP/1.1 204 Yes\r\n\r\n")
            return true
        }
        let again = try Bench([try definition(taking.url)], store, name)
        #expect(again.service.deadLetterCount("t") == 3)
        #expect(try again.service.replay(ofDeadLetters: "t").run() == 3)
        #expect(again.service.deadLetterCount("t") == 0)
        #expect(await eventually { again.service.pending("t") == 0 })
        #expect(ids.withLock { Set($0) } == Set(letters.map(\.id)))
        again.stop()
    }

    /// The trigger is paused, and nobody reads its dead letters: nothing else would look for the database.
    @Test func whatADeletedDatabaseHadIsForgotten() async throws {
        let refusing = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let terms = ", \"retry\": {\"maxAttempts\": 1}"
        let bench = try Bench([try definition(refusing.url, terms)], MemoryStore(), name)
        _ = try commit(0, bench)
        #expect(await eventually { bench.service.deadLetterCount("t") == 1 })
        try bench.service.set(try definition(refusing.url, terms + ", \"paused\": true"))
        _ = try commit(1, bench)
        let before = bench.service.totals()
        #expect(before.values.map(\.pending) == [1] && before.values.map(\.deadLetters) == [1])
        #expect(before.values.first?.oldest == bench.service.oldestPending("t")?.microseconds)
        // Closed, as an unused one.
        bench.database.close(because: .unavailable("closed"))
        bench.service.forgetDeleted()
        #expect(bench.service.totals() == before)
        bench.isDeleted.value.withLock { $0 = true }
        bench.service.forgetDeleted()
        #expect(bench.service.totals().isEmpty)
        #expect(bench.service.pending("t") == 0 && bench.service.deadLetterCount("t") == 0)
        bench.stop()
    }

    @Test func commitsSinceATimeAreSentAgain() async throws {
        let ids = Mutex<[String]>([])
        let taking = ScriptedEndpoint { connection, _ in
            let id = connection.request.split(separator: "\r\n").first { $0.hasPrefix("ce-id: ") }?.dropFirst(7)
            ids.withLock { $0.append(String(id ?? "")) }
            connection.write("HTTP/1.1 204 Yes\r\n\r\n")
            return true
        }
        let bench = try Bench([try definition(taking.url)], MemoryStore(), name)
        _ = try commit(0, bench)
        let time = try commit(1, bench)
        _ = try commit(2, bench)
        #expect(await eventually { bench.service.pending("t") == 0 && ids.withLock { $0.count } == 3 })
        #expect(try bench.service.replay("t", since: time).run() == 2)
        #expect(await eventually { bench.service.pending("t") == 0 && ids.withLock { $0.count } == 5 })
        ids.withLock { ids in
            // They sort by commit.
            #expect(ids[3...].sorted() == Array(ids[..<3].sorted()[1...]))
        }
        bench.stop()
    }

    /// A call is under way that ends only when the replayed event has come.
    @Test func aReplayIsDeliveredWhileACallIsUnderWay() async throws {
        let (replayed, begun) = (Latch(), Latch())
        let seen = Mutex(Set<String>())
        let endpoint = ScriptedEndpoint { connection, _ in
            let document = connection.request.split(separator: "\r\n").first { $0.hasPrefix("ce-document: ") }
            let isSlow = document?.hasSuffix("d9") ?? false
            if isSlow {
                begun.open()
                replayed.wait()
            } else if !seen.withLock({ $0.insert(String(document ?? "")).inserted }) {
                replayed.open()
            }
            connection.write("HTTP/1.1 204 Yes\r\n\r\n")
            return true
        }
        let bench = try Bench([try definition(endpoint.url)], MemoryStore(), name)
        defer { bench.stop() }
        let time = try commit(1, bench)
        #expect(await eventually { bench.service.pending("t") == 0 })
        _ = try commit(9, bench)
        begun.wait()
        #expect(try bench.service.replay("t", since: time).run() == 2)
        replayed.wait()
        #expect(await eventually { bench.service.pending("t") == 0 })
    }

    @Test func whatDiesAgainIsNotSentAgainByTheSameReplay() async throws {
        let refusing = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let bench = try Bench(
            [try definition(refusing.url, ", \"retry\": {\"maxAttempts\": 1}")], MemoryStore(), name)
        // More than one step of a replay has.
        let count = 600
        for number in 0..<count { _ = try commit(number, bench) }
        #expect(await eventually { bench.service.deadLetterCount("t") == count })
        #expect(try bench.service.replay(ofDeadLetters: "t").run() == count)
        #expect(await eventually { bench.service.deadLetterCount("t") == count })
        bench.stop()
    }

    @Test func aClockThatIsAheadDeletesNoDeadLetters() async throws {
        let refusing = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let store = MemoryStore()
        let trigger = try definition(refusing.url, ", \"retry\": {\"maxAttempts\": 1}")
        let bench = try Bench([trigger], store, name)
        for number in 0..<5 { _ = try commit(number, bench) }
        #expect(await eventually { bench.service.deadLetterCount("t") == 5 })
        bench.stop()
        let ahead = StoppedClock(microseconds: SystemClock().now().microseconds + 30 * 86_400_000_000)
        let again = try Bench([trigger], store, name, clock: ahead)
        again.service.expireDeadLetters()
        _ = try commit(9, again)
        #expect(again.service.deadLetterCount("t") >= 5)
        // What has surely passed counts.
        ahead.advance(seconds: 8 * 86_400)
        again.service.expireDeadLetters()
        #expect(await eventually { again.service.deadLetterCount("t") < 5 })
        again.stop()
    }

    /// Its time isn't believed yet, and is that of its newest commit when it was opened: none.
    @Test func aNewDatabaseKeepsItsDeadLetters() async throws {
        let refusing = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let bench = try Bench([try definition(refusing.url, ", \"retry\": {\"maxAttempts\": 1}")], MemoryStore(), name)
        defer { bench.stop() }
        for number in 0..<5 { _ = try commit(number, bench) }
        #expect(await eventually { bench.service.deadLetterCount("t") == 5 })
        bench.service.expireDeadLetters()
        // Queued behind that.
        #expect(try bench.service.deletion(ofDeadLetters: "t").run() == 5)
    }

    @Test func aReplayOfCommitsBesideOneOfDeadLettersLeavesOneOfEach() async throws {
        let refusing = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let bench = try Bench([try definition(refusing.url, ", \"retry\": {\"maxAttempts\": 1}")], MemoryStore(), name)
        defer { bench.stop() }
        let time = try commit(0, bench)
        // More than one step has.
        let count = 600
        for number in 1..<count { _ = try commit(number, bench) }
        #expect(await eventually { bench.service.deadLetterCount("t") == count })
        let steps = try bench.service.replay("t", since: time)
        // The first opens the database, and the second is one of the replay.
        #expect(try steps.step() && steps.step())
        #expect(await eventually { bench.service.pending("t") == 0 })
        #expect(try bench.service.replay(ofDeadLetters: "t").run() == count)
        #expect(await eventually { bench.service.deadLetterCount("t") == count && bench.service.pending("t") == 0 })
        #expect(try steps.run() == count)
        #expect(await eventually { bench.service.pending("t") == 0 })
        #expect(bench.service.deadLetterCount("t") == count)
    }

    @Test func deadLettersAreDeleted() async throws {
        let refusing = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let bench = try Bench(
            [try definition(refusing.url, ", \"retry\": {\"maxAttempts\": 1}")], MemoryStore(), name)
        for number in 0..<5 { _ = try commit(number, bench) }
        #expect(await eventually { bench.service.deadLetterCount("t") == 5 })
        #expect(try bench.service.deletion(ofDeadLetters: "t").run() == 5)
        #expect(try bench.service.deadLetters("t", after: nil, limit: 10).isEmpty)
        #expect(bench.service.deadLetterCount("t") == 0)
        #expect(throws: Status.self) { try bench.service.deletion(ofDeadLetters: "other").run() }
        bench.stop()
    }

    private func queuedCount(_ store: MemoryStore) -> Int {
        do {
            let snapshot = try store.snapshot()
            defer { snapshot.close() }
            return try snapshot.count(.meta, EventQueue.all, limit: .max)
        } catch {
            Issue.record(error)
            return 0
        }
    }

    @Test func aTriggerThatIsRemovedTakesItsEventsAlong() async throws {
        let store = MemoryStore()
        let bench = try Bench([try definition("http://127.0.0.1:9/")], store, name)
        for number in 0..<5 { _ = try commit(number, bench) }
        #expect(bench.service.pending("t") == 5 && bench.service.oldestPending("t") != nil)
        #expect(bench.service.remove("t") && !bench.service.remove("t"))
        #expect(bench.service.pending("t") == 0)
        #expect(await eventually { queuedCount(store) == 0 })
        bench.stop()
        // It's gone for good: a trigger of the same name has no events.
        let again = try Bench([try definition("http://127.0.0.1:9/")], store, name)
        #expect(again.service.pending("t") == 0)
        again.stop()
    }

    @Test func recordsOfDeadLettersAreReadAsTheyWereWritten() throws {
        for kind in [DeliveryFailure.Kind.status(404), .timeout, .cut, .unreachable] {
            let letter = DeadLetter(attempts: 7, failure: DeliveryFailure(kind, "why"), record: [1, 2, 3])
            #expect(try DeadLetter(letter.bytes) == letter)
            for count in 0..<13 { #expect(throws: Status.self) { try DeadLetter(Array(letter.bytes.prefix(count))) } }
        }
    }
}
