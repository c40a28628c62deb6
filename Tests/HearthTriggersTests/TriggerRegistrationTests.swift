import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthTriggers

/// What functions emulators and administrators register.
struct TriggerRegistrationTests {
    private func emulator() throws -> (EmulatorTriggers, TriggerService) {
        let service = try TriggerService(TriggerService.Configuration())
        return (EmulatorTriggers(service, address: "127.0.0.1:9", log: Log()), service)
    }

    private func value(_ json: String) throws -> ConfigurationValue {
        try ConfigurationValue(parsing: Array(json.utf8), file: "body")
    }

    private static let event = """
        {"eventType": "google.cloud.firestore.document.v1.written", "document": {"value": "c/{id}"}}
        """
    private static let legacy = """
        {"eventTrigger": {"resource": "projects/p/databases/(default)/documents/c/{id}",
         "eventType": "providers/cloud.firestore/eventTypes/document.write", "service": "firestore.googleapis.com"}}
        """

    private func location(_ key: String) -> String {
        """
        {"name": "projects/p/locations/_/functions/\(key)", "path": "/n/{id}", "topic": "t", "pending": 7,
         "event": "providers/google.firebase.database/eventTypes/ref.write"}
        """
    }

    /// More loads than a server has triggers.
    @Test func aFunctionThatIsLoadedAgainReplacesItself() throws {
        let (emulator, service) = try emulator()
        defer { service.stop() }
        try emulator.setEvent("p", "us-central1-f-x", try value(Self.event))
        try emulator.setEvent("other", "us-central1-f-0", try value(Self.event))
        for generation in 0..<600 {
            try emulator.setEvent("p", "us-central1-f-\(generation)", try value(Self.event))
            try emulator.setEvent("p", "us-central1-f-2-\(generation)", try value(Self.event))
            try emulator.setLegacy("p", "us-central1-g-\(generation)", try value(Self.legacy))
            try emulator.setLocation("ns", try value(location("us-central1-h-\(generation)")))
            try emulator.setLocations("ns2", try value("[\(location("us-central1-i-\(generation)"))]"))
        }
        let names =
            ["other/us-central1-f"] + ["f", "f-2", "f-x", "g", "h", "i"].map { "p/us-central1-\($0)" }
        #expect(service.definitions.map(\.name) == names.map { "emulator:" + $0 })
        for (namespace, key) in [("ns", "h"), ("ns2", "i")] {
            let list = try ConfigurationValue(parsing: emulator.list(namespace), file: "answer").elements()
            #expect(
                try list.map { try $0.member("name")?.string() } == [
                    "projects/p/locations/_/functions/us-central1-\(key)-599"
                ])
        }
        let name = "emulator:p/us-central1-f"
        #expect(service.definition(name)?.target.url.hasSuffix("/projects/p/triggers/us-central1-f-599") == true)
        // A functions emulator that was started anew begins with the first one.
        try emulator.setEvent("p", "us-central1-f-0", try value(Self.event))
        #expect(service.definition(name)?.target.url.hasSuffix("/projects/p/triggers/us-central1-f-0") == true)
    }

    @Test func whatWaitsForAFunctionIsSentWhenItIsLoadedAgain() throws {
        let (begun, reloaded, sentAgain) = (Latch(), Latch(), Latch())
        let endpoint = ScriptedEndpoint { connection, _ in
            let line = connection.request.prefix { $0 != "\r\n" }
            if line.contains("/us-central1-f-2 ") {
                sentAgain.open()
            } else {
                begun.open()
                reloaded.wait()
            }
            connection.write("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        let service = try TriggerService(TriggerService.Configuration())
        let database = try Database(name: DatabaseName(project: "p"), store: MemoryStore())
        defer { withExtendedLifetime(database) { service.stop() } }
        try service.opened(database)
        let emulator = EmulatorTriggers(service, address: "127.0.0.1:\(endpoint.port)", log: Log())
        try emulator.setEvent("p", "us-central1-f-1", try value(Self.event))
        let write = Write(
            document: ResourceName(database: database.name, path: ResourcePath(["c", "d"])),
            operation: .update(fields: MapValue([]), mask: nil), transforms: [], precondition: .none)
        let outcome = Promise<Result<CommitOutcome, Status>>()
        database.commit([write], requester: .server, author: [1]) { outcome.give($0) }
        _ = try outcome.wait().get()
        begun.wait()
        #expect(service.pending("emulator:p/us-central1-f") == 1)
        try emulator.setEvent("p", "us-central1-f-2", try value(Self.event))
        reloaded.open()
        sentAgain.wait()
    }

    /// Firebase's tools answer with 404 for a function that is gone, and for a moment for one that is loaded.
    @Test func aFunctionIsGoneThatIsMissingForLongAndNotOnceThere() throws {
        let clock = StoppedClock()
        let service = try TriggerService(TriggerService.Configuration(), clock: clock)
        defer { service.stop() }
        let emulator = EmulatorTriggers(service, address: "127.0.0.1:9", log: Log())
        func load(_ generation: Int) throws -> TriggerDefinition {
            try emulator.setEvent("p", "us-central1-f-\(generation)", try value(Self.event))
            return try #require(service.definitions.first)
        }
        var definition = try load(1)
        /// - Returns: whether it is there afterwards.
        func isThere(after seconds: Double, isMissing: Bool = true) -> Bool {
            clock.advance(seconds: seconds)
            let route = EventDispatcher.RouteID(
                trigger: definition.name, database: "d", serial: definition.id.serial)
            service.journal.responded(route, definition.revision, isMissing: isMissing)
            let done = Latch()
            service.background { done.open() }
            done.wait()
            return service.definition(definition.name) != nil
        }
        #expect(isThere(after: 0) && isThere(after: 1.9))
        #expect(isThere(after: 0.2, isMissing: false))
        // It was there in between, or may have been.
        #expect(isThere(after: 3) && isThere(after: 60))
        let former = definition
        definition = try load(2)
        #expect(definition.id == former.id && isThere(after: 3))
        #expect(!isThere(after: 2))
    }

    /// None of a registration is in force when there are too many.
    @Test func aRegistrationIsAllOrNothing() throws {
        let (emulator, service) = try emulator()
        defer { service.stop() }
        try emulator.setLocations("a", try value("[\(location("a-1")), \(location("b-1"))]"))
        try emulator.setEvent("p", "c-1", try value(Self.event))
        let many = (0..<498).map { location("f\($0)-1") }.joined(separator: ",")
        #expect(throws: Status.self) { try emulator.setLocations("b", try value("[\(many)]")) }
        #expect(service.definitions.map(\.name) == ["a", "b", "c"].map { "emulator:p/" + $0 })
        #expect(emulator.list("b") == Array("[]".utf8))
        // Those that are not among them any more end.
        try emulator.setLocations("a", try value("[\(location("b-2"))]"))
        try emulator.setLocations("b", try value("[\(many)]"))
        #expect(service.definitions.count == 500)
    }

    /// The list of all is one answer, which is made at once.
    @Test func theListOfRegistrationsIsSmall() throws {
        let (emulator, service) = try emulator()
        defer { service.stop() }
        func registration(_ key: String, topicBytes: Int) throws -> ConfigurationValue {
            let topic = String(repeating: "t", count: topicBytes)
            return try value(location(key).replacing("\"topic\": \"t\"", with: "\"topic\": \"\(topic)\""))
        }
        try emulator.setLocation("ns", try registration("k-1", topicBytes: 3_000))
        #expect(throws: Status.self) { try emulator.setLocation("ns", try registration("l-1", topicBytes: 5_000)) }
        let all = try (0..<499).map { number in
            var json: [UInt8] = []
            try registration("m\(number)-1", topicBytes: 3_000).appendJSON(to: &json)
            return String(decoding: json, as: UTF8.self)
        }
        try emulator.setLocations("ns", try value("[\(all.joined(separator: ","))]"))
        #expect(emulator.list("ns").count < 2 << 20)
    }

    @Test func aRegistrationHasNoMemberTwice() throws {
        let (emulator, service) = try emulator()
        defer { service.stop() }
        try emulator.setLocation("ns", try value(location("k-1")))
        let definition = try #require(service.definitions.first)
        var writer = JSONWriter()
        TriggerReport.append(definition, service, nil, to: &writer)
        let members = try ConfigurationValue(parsing: writer.bytes, file: "answer").members()
        #expect(Set(members.map(\.name)).count == members.count)
        #expect(try members.first { $0.name == "name" }?.value.string() == "emulator:p/k")
        #expect(try members.first { $0.name == "pending" }?.value.integer(0...9) == 0)
        #expect(members.contains { $0.name == "path" })
    }

    @Test func ofMembersWithOneNameTheLastIsShown() throws {
        var json: [UInt8] = []
        try value(#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}"#).appendJSON(to: &json)
        #expect(String(decoding: json, as: UTF8.self) == #"{"b":{"c":2},"a":3}"#)
    }

    /// A file that is replaced at this moment would count as one without triggers, and their events would be dropped.
    @Test func aConfigurationThatIsNotThereIsNoneWithoutTriggers() throws {
        let source = TriggerFile(path: "/nowhere/hearth.json", project: "p")
        #expect(throws: Status.failedPrecondition("The file is missing.")) {
            var reading = FileReading()
            _ = try source.definitions(&reading)
        }
    }

    /// None of the files is there, which only those are asked for that may be named.
    @Test(arguments: [
        ("a.trigger-secret", true), ("b/a.trigger-secret", true), ("service-account.json", false),
        ("/etc/a.trigger-secret", false),
        ("b/../../a.trigger-secret", false), ("secret", false),
    ])
    func administratorsNameNoOtherFilesThanSecrets(file: String, isAsked: Bool) throws {
        let service = try TriggerService(TriggerService.Configuration())
        defer { service.stop() }
        let source = TriggerFile(path: "/nowhere/hearth.json", project: "p")
        let configuration = TriggerConfiguration(
            service: service, source: source, file: [], store: TriggerStore(path: nil, file: source) { _, _ in },
            stored: [], polls: false, log: Log())
        let body = """
            {"event": "google.cloud.firestore.document.v1.written", "document": "c/{id}", "url": "http://e/",
             "secretFile": "\(file)"}
            """
        do throws(Status) {
            try configuration.put("t", Array(body.utf8))
            Issue.record("It was taken.")
        } catch {
            #expect(error.code == .invalidArgument && error.message.contains("secretFile"), "\(error)")
            #expect(error.message.contains("is not there") == isAsked, "\(error)")
        }
        #expect(service.definitions.isEmpty)
    }
}
