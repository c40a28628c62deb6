import HearthEvents
import HearthHost
import HearthModel
import Testing

@testable import HearthTriggers

struct TriggerDefinitionTests {
    private func definition(_ json: String, name: String = "t") throws -> TriggerDefinition {
        let bytes = Array(json.utf8)
        return try TriggerDefinition(
            name: name, try ConfigurationValue(parsing: bytes, file: "hearth.json"), source: .file,
            defaultProject: "app"
        ) { (path) throws(Status) in
            if path == "missing" { throw .failedPrecondition("missing is not there.") }
            return Array(path.utf8)
        }
    }

    private static let event = "\"event\":\"google.cloud.firestore.document.v1.written\""
    private static let reference = "\"event\":\"google.firebase.database.ref.v1.written\""
    private static let usual = "\(event),\"document\":\"a/{b}\",\"url\":\"http://127.0.0.1:8081/\""
    private static let presence = "\(reference),\"ref\":\"status/{uid}\",\"url\":\"https://fn.example.com/p\""

    @Test func whatIsNotWrittenHasItsUsualValue() throws {
        let trigger = try definition("{\(Self.usual)}")
        #expect(trigger.type.name == "google.cloud.firestore.document.v1.written")
        #expect(
            trigger.pattern.string == "a/{b}" && trigger.target == EventSender.Target(url: "http://127.0.0.1:8081/"))
        #expect(trigger.terms == DeliveryTerms() && trigger.maxAgeSeconds == 86_400)
        #expect(trigger.form == EventRequest.Form())
        #expect(trigger.isFor(DatabaseName(project: "app")))
        #expect(!trigger.isFor(DatabaseName(project: "app", database: "other")))
        #expect(!trigger.isFor(DatabaseName(project: "other")) && !trigger.isFor(namespace: "app"))
    }

    @Test func everyMemberIsRead() throws {
        let trigger = try definition(
            """
            {\(Self.usual), "project": "*", "database": "d", "secretFile": "s3cret \\n", "mode": "structured", "content": "json",
             "order": "none", "concurrency": 4, "timeout": "1.5m", "paused": true,
             "retry": {"minBackoff": "200ms", "maxBackoff": "2h", "maxAge": "7d", "maxAttempts": 100}}
            """)
        #expect(trigger.target.secret == "s3cret" && trigger.target.timeoutMilliseconds == 90_000)
        #expect(trigger.form == EventRequest.Form(isStructured: true, isJSON: true))
        var terms = DeliveryTerms()
        terms.isOrdered = false
        terms.concurrency = 4
        terms.isPaused = true
        terms.minBackoffNanoseconds = 200_000_000
        terms.maxBackoffNanoseconds = 7_200_000_000_000
        terms.attemptsMax = 100
        #expect(trigger.terms == terms && trigger.maxAgeSeconds == 604_800)
        #expect(trigger.isFor(DatabaseName(project: "x", database: "d")))
        let once = try definition("{\(Self.usual),\"retry\":false}")
        #expect(!once.terms.repeatsAnswers && once.target.opensConnections)
        #expect(try definition("{\(Self.usual),\"retry\":{\"maxAttempts\":1}}").target.opensConnections)
    }

    @Test func namespacesMayHaveAPattern() throws {
        #expect(try definition("{\(Self.presence)}").isFor(namespace: "any"))
        let trigger = try definition("{\(Self.presence),\"instance\":\"app-*-eu\"}")
        #expect(trigger.isFor(namespace: "app-1-eu") && !trigger.isFor(namespace: "app-eu"))
        #expect(!trigger.isFor(DatabaseName(project: "app")))
        #expect(try definition("{\(Self.presence),\"instance\":\"one\"}").isFor(namespace: "one"))
    }

    @Test(arguments: [
        ("{}", "hearth.json:1:1: \"event\" is missing."),
        ("{\"event\":\"x\"}", "hearth.json:1:10: event: There is no event type \"x\"."),
        (
            "{\"event\":\"google.cloud.firestore.document.v1.writen\"}",
            "v1.writen\"; did you mean \"google.cloud.firestore.document.v1.written\"?"
        ),
        (
            "{\"event\":\"providers/cloud.firestore/eventTypes/document.written\"}",
            "; did you mean \"providers/cloud.firestore/eventTypes/document.write\"?"
        ),
        ("{\"event\":\"deleted\"}", "; did you mean \"google.cloud.firestore.document.v1.deleted\"?"),
        ("{\(usual),\"url\":\"http://a:65536/\"}", "url: The URL's port is not a number from 1 to 65535."),
        ("{\(usual),\"url\":\"http://a:0/\"}", "url: The URL's port is not a number from 1 to 65535."),
        ("{\(usual),\"url\":\"http://a:/\"}", "url: The URL's port is not a number from 1 to 65535."),
        ("{\(usual),\"url\":\"http://a:80x?b\"}", "url: The URL's port is not a number from 1 to 65535."),
        (
            "{\(usual),\"url\":\"http://[::1]:99999999999999999999/\"}",
            "url: The URL's port is not a number from 1 to 65535."
        ),
        ("{\(usual),\"url\":\"http://[::1]80/\"}", "url: The URL has no port behind its address."),
        ("{\(usual),\"url\":\"http://[::1/\"}", "url: The URL's address has no end."),
        ("{\(event)}", "\"document\" is missing."), ("{\(reference)}", "\"ref\" is missing."),
        ("{\(usual),\"ref\":\"a\"}", "ref: An event of this type has \"document\"."),
        ("{\(usual),\"docment\":\"a\"}", "docment: Unknown setting; did you mean \"document\"?"),
        ("{\(usual),\"url\":\"ftp://a\"}", "url: Expected a URL of http or https."),
        ("{\(usual),\"url\":\"http://u:p@a/\"}", "url: A URL here has no credentials; use \"secretFile\"."),
        ("{\(usual),\"url\":\"http://a/#b\"}", "url: A URL here has no fragment."),
        ("{\(usual),\"url\":\"http:///a\"}", "url: The URL has no host."),
        ("{\(usual),\"url\":\"http://a/ b\"}", "url: The URL has bytes that must be percent-encoded."),
        ("{\(usual),\"instance\":\"a\"}", "instance: Events of Cloud Firestore have \"database\"."),
        ("{\(presence),\"database\":\"a\"}", "database: Events of the Realtime Database have \"instance\"."),
        ("{\(presence),\"content\":\"protobuf\"}", "content: Events of the Realtime Database are JSON."),
        ("{\(presence),\"instance\":\"a*b*\"}", "instance: A pattern of namespaces is a name, or has one star."),
        ("{\(usual),\"secretFile\":\"missing\"}", "secretFile: missing is not there."),
        ("{\(usual),\"secretFile\":\" \"}", "secretFile: The file has no secret."),
        ("{\(usual),\"secretFile\":\"a\\u0001b\"}", "secretFile: The secret has bytes that a header can't have."),
        ("{\(usual),\"mode\":\"x\"}", "mode: Expected \"binary\" or \"structured\"."),
        ("{\(usual),\"concurrency\":257}", "concurrency: Expected a whole number from 1 to 256."),
        ("{\(usual),\"timeout\":\"2h\"}", "timeout: Expected from 1ms to 1h."),
        ("{\(usual),\"timeout\":5}", "timeout: Expected a string, found a number."),
        ("{\(usual),\"timeout\":\"5 s\"}", "timeout: Expected a number and ms, s, m, h or d, as \"30s\"."),
        ("{\(usual),\"retry\":{\"maxAge\":\"8d\"}}", "retry.maxAge: Expected from 1s to 7d."),
        ("{\(usual),\"retry\":{\"max\":1}}", "retry.max: Unknown setting."),
        (
            "{\(usual),\"retry\":{\"minBackoff\":\"9s\",\"maxBackoff\":\"1s\"}}",
            "retry: \"maxBackoff\" is less than \"minBackoff\"."
        ),
        ("{\(usual),\"document\":\"a//b\"}", "document: The pattern \"a//b\" has an empty segment."),
    ])
    func whatIsWrongIsNamed(json: String, message: String) {
        let status = #expect(throws: Status.self) { try definition(json) }
        #expect(status?.code == .invalidArgument)
        #expect(status?.message.hasSuffix(message) == true, "\(status?.message ?? "")")
    }

    @Test(arguments: ["", "1a", "a b", "a.b", "é", String(repeating: "a", count: 64)])
    func namesHaveASyntax(name: String) {
        #expect(throws: Status.self) { try definition("{\(Self.usual)}", name: name) }
    }
}
