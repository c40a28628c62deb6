import HearthEngine
import HearthEvents
import HearthModel
import HearthTree
import HearthTreeStorage
import HearthWire
import Synchronization
import Testing

@testable import HearthServer

/// Who made a write over REST, as events name it.
@Suite struct RealtimeAuthorTests {
    private final class Authors: TreeRecorder {
        private let authors = Mutex<[EventAuthor]>([])

        func record(
            _ changes: [TreeChange], version: Int64, by author: () -> [UInt8], before view: TreeView,
            in transaction: any StoreTransaction
        ) throws(Status) {
            let author = EventAuthor(stored: author())
            authors.withLock { $0.append(author) }
        }

        func ended(isDurable: Bool) {}

        func take() -> [EventAuthor] {
            authors.withLock { authors in
                defer { authors = [] }
                return authors
            }
        }
    }

    private static func token(_ claims: String) -> String {
        func part(_ json: String) -> String { Base64.encodeURLSafe(Array(json.utf8)) }
        return part(#"{"alg":"none","typ":"JWT"}"#) + "." + part(claims) + "."
    }

    private static let claims =
        #"{"sub":"ann","user_id":"ann","iat":1,"exp":9999999999,"aud":"p","iss":"https://securetoken.google.com/p","#
        + #""role":"editor","firebase":{"sign_in_provider":"password"}}"#

    @Test func everyKindOfCallerIsNamed() async throws {
        let server = try await ServedServer { $0.project = "p" }
        defer { server.stop() }
        let namespace = try server.server.realtime.namespace("ns")
        let authors = Authors()
        namespace.database.setRecorder(authors)
        func write(_ method: String, _ query: String = "", token: String? = nil) async throws -> [EventAuthor] {
            let body = method == "DELETE" ? "" : #"{"x":1}"#
            let answer = try await server.http(method, "/a.json?ns=ns" + query, body, token: token)
            #expect(answer.status == 200, "\(answer.body)")
            return authors.take()
        }
        for method in ["PUT", "PATCH", "POST", "DELETE"] {
            #expect(try await write(method) == [.nobody])
            #expect(try await write(method, token: "owner") == [.administrator(name: "")])
        }
        guard
            case .user("ann", "password", let claims)? = try await write(
                "PUT", "&auth=" + Self.token(Self.claims)
            ).first
        else { throw Status.aborted("not ann") }
        let parsed = try TreeJSON.value(Array(claims.utf8))
        #expect(parsed["role"]?.string == "editor" && parsed["sub"]?.string == "ann")
        // An administrator in the name of others.
        let override = "&auth_variable_override="
        #expect(
            try await write("PUT", override + "%7B%22uid%22%3A%22bob%22%7D", token: "owner")
                == [.user(id: "bob", provider: "custom", claims: "{}")])
        #expect(try await write("PUT", override + "null", token: "owner") == [.nobody])
        #expect(
            try await write("PUT", override + "%7B%22role%22%3A1%7D", token: "owner") == [.administrator(name: "")])
    }

    @Test func onlyAdministratorsWriteWithoutEvents() async throws {
        let server = try await ServedServer { $0.project = "p" }
        defer { server.stop() }
        let namespace = try server.server.realtime.namespace("ns")
        let authors = Authors()
        namespace.database.setRecorder(authors)
        let path = "/a.json?ns=ns&disableTriggers="
        #expect(try await server.http("PUT", path + "true", "1", token: "owner").status == 200)
        #expect(authors.take() == [])
        for token in [nil, Self.token(Self.claims)] {
            let answer = try await server.http("PUT", path + "true", "2", token: token)
            #expect(answer.status == 401)
            #expect(try TreeJSON.value(Array(answer.body.utf8))["error"]?.string == "Permission denied")
        }
        #expect(try await server.http("PUT", path + "false", "3").status == 200)
        #expect(authors.take() == [.nobody])
        let last = try await server.http("GET", "/a.json?ns=ns")
        #expect(last.body == "3")
    }
}
