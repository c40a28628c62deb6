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

/// One made-up event, sent for an administrator.
struct TriggerTestTests {
    private let store = MemoryStore()
    private let name = DatabaseName(project: "p")

    private func definition(_ url: String, _ more: String = "", event: String = "written") throws -> TriggerDefinition {
        let json = """
            {"event": "google.cloud.firestore.document.v1.\(event)", "document": "c/{id}", "url": "\(url)"\(more)}
            """
        return try TriggerDefinition(
            name: "t", try ConfigurationValue(parsing: Array(json.utf8), file: "f"), source: .file,
            defaultProject: "p"
        ) { (_) throws(Status) in Array("s3cret".utf8) }
    }

    /// A service with a database that has the document `c/d`. The trigger is paused, so that its own event is not sent.
    private func service(_ definition: TriggerDefinition) throws -> (TriggerService, Database) {
        var configuration = TriggerService.Configuration()
        configuration.definitions = [definition]
        let service = try TriggerService(configuration)
        let database = try Database(name: name, store: store)
        try service.opened(database)
        let name = name
        service.start(
            TriggerDirectory(
                names: { [name] }, exists: { _ in true }, open: { _, done in done(.success(database)) }))
        let outcome = Promise<Result<CommitOutcome, Status>>()
        let write = Write(
            document: ResourceName(database: name, path: ResourcePath(["c", "d"])),
            operation: .update(fields: MapValue([MapValue.Field(name: "n", value: .integer(7))]), mask: nil),
            transforms: [], precondition: .none)
        database.commit([write], requester: .server, author: EventAuthor.system.stored) { outcome.give($0) }
        _ = try outcome.wait().get()
        return (service, database)
    }

    private func test(_ service: TriggerService, _ path: String = "c/d") throws(Status) -> ConfigurationValue {
        let result = Promise<TriggerService.TestResult>()
        try service.test("t", .document(path), project: "p") { result.give($0) }
        return try ConfigurationValue(parsing: result.wait().json, file: "answer")
    }

    private func header(_ name: String, _ message: ConfigurationValue?) throws -> String? {
        for header in try message?.member("headers")?.elements() ?? [] {
            if try header.member("name")?.string() == name { return try header.member("value")?.string() }
        }
        return nil
    }

    @Test func theEndpointGetsOneMarkedEventAndNothingIsCounted() throws {
        let requests = Mutex<[String]>([])
        let endpoint = ScriptedEndpoint { connection, _ in
            requests.withLock { $0.append(connection.request) }
            connection.write("HTTP/1.1 500 No\r\nx-own: 1\r\ncontent-length: 5\r\n\r\nwrong")
            return true
        }
        let (service, database) = try service(
            try definition(endpoint.url, #", "content": "json", "paused": true, "secretFile": "s""#))
        defer { withExtendedLifetime(database) { service.stop() } }
        let value = try test(service)
        let (request, answer) = (try value.member("request"), try value.member("answer"))
        #expect(try header("x-hearth-test", request) == "true" && header("ce-document", request) == "c/d")
        #expect(try header("authorization", request) == "Bearer ***")
        let data = try value.member("event")?.member("data")
        for state in ["value", "oldValue"] {
            let field = try data?.member(state)?.member("fields")?.member("n")
            #expect(try field?.member("integerValue")?.string() == "7")
        }
        #expect(try data?.member("value")?.member("updateTime")?.string() == header("ce-time", request))
        #expect(try answer?.member("acknowledged")?.boolean() == false)
        #expect(try answer?.member("status")?.integer(0...999) == 500 && header("x-own", answer) == "1")
        #expect(try answer?.member("body")?.string() == "wrong" && answer?.member("bodyBytes")?.integer(0...9) == 5)
        let sent = requests.withLock { $0 }
        #expect(sent.count == 1 && sent[0].contains("authorization: Bearer s3cret") == true)
        #expect(try sent[0].hasSuffix(request?.member("body")?.string() ?? "-"))
        let figures = service.journal.figures("t")
        #expect(figures.failedAttempts == 0 && figures.lastError == nil && service.pending("t") == 1)
    }

    @Test(arguments: [("created", true, false), ("updated", true, true), ("deleted", false, true)])
    func theEventHasTheStatesOfItsType(event: String, hasAfter: Bool, hasBefore: Bool) throws {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            return true
        }
        let (service, database) = try service(try definition(endpoint.url, #", "paused": true"#, event: event))
        defer { withExtendedLifetime(database) { service.stop() } }
        let value = try test(service, "projects/p/databases/(default)/documents/c/d")
        let data = try value.member("event")?.member("data")
        #expect(try (data?.member("value") != nil) == hasAfter && (data?.member("oldValue") != nil) == hasBefore)
        #expect(try value.member("answer")?.member("acknowledged")?.boolean() == true)
        // Protobuf is no string.
        #expect(try value.member("request")?.member("bodyBase64")?.string().isEmpty == false)
    }

    @Test func whoDoesNotAnswerIsUnreachable() throws {
        let port = ScriptedEndpoint { _, _ in false }.port
        let (service, database) = try service(try definition("http://127.0.0.1:\(port)/", #", "paused": true"#))
        defer { withExtendedLifetime(database) { service.stop() } }
        let answer = try test(service).member("answer")
        #expect(try answer?.member("status")?.string() == "unreachable" && answer?.member("headers") == nil)
    }

    @Test(arguments: [
        ("c/other", Status.Code.notFound, "there is no document"), ("c", .invalidArgument, "lacks"),
        ("e/d", .invalidArgument, "does not match"),
        ("projects/p/databases/x/documents/c/d", .invalidArgument, "is not for"), ("", .invalidArgument, "document: "),
    ])
    func refusals(path: String, code: Status.Code, part: String) throws {
        let (service, database) = try service(try definition("http://127.0.0.1:1/", #", "paused": true"#))
        defer { withExtendedLifetime(database) { service.stop() } }
        do throws(Status) {
            _ = try test(service, path)
            #expect(Bool(false), "\(path) was taken")
        } catch {
            #expect(error.code == code && error.message.contains(part), "\(error)")
        }
    }

    @Test func testsThatWaitAreBounded() throws {
        let release = Promise<Bool>()
        let endpoint = ScriptedEndpoint { connection, _ in
            _ = release.wait()
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            return true
        }
        let (service, database) = try service(try definition(endpoint.url, #", "paused": true"#))
        defer { withExtendedLifetime(database) { service.stop() } }
        let results = (0..<TriggerService.testsMax).map { _ in Promise<TriggerService.TestResult>() }
        for result in results { try service.test("t", .document("c/d"), project: "p") { result.give($0) } }
        do throws(Status) {
            _ = try test(service)
            #expect(Bool(false), "one more was taken")
        } catch {
            #expect(error.code == .resourceExhausted)
        }
        release.give(true)
        for result in results { #expect(result.wait().answer == .acknowledged) }
        #expect(try test(service).member("answer")?.member("acknowledged")?.boolean() == true)
    }
}
