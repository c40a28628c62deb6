@testable import HearthFirestoreServer
import HearthConcurrency
import HearthHost
import HearthModel
import HearthNetwork
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthServer

/// The header `x-hearth-once` over gRPC and REST.
@Suite struct OnceHeaderTests {
    private static let database = "projects/p/databases/(default)"
    private static let documents = "\(database)/documents"
    private static let administrator = "a secret of an administrator's credential"
    private static let key = [UInt8](repeating: 7, count: 32)

    private let folder = TemporaryFolder()

    private func served(rules: String? = nil) async throws -> ServedServer {
        if let rules { folder.write("rules", rules) }
        let key = try SigningKey.secret(Self.key)
        return try await ServedServer { configuration in
            configuration.dataFolder = folder.path + "/data"
            configuration.isEmulator = false
            configuration.project = "p"
            if rules != nil { configuration.rules["(default)"] = folder.path + "/rules" }
            configuration.identity.keys = [.init(id: nil, key: key)]
            configuration.identity.credentials = [
                .init(name: "all", secret: Self.administrator),
                .init(name: "read", secret: "a secret of a credential that reads", isReadOnly: true),
                .init(name: "other", secret: "a secret of a credential of a project", project: "other"),
            ]
        }
    }

    private static func increments(_ documents: [String], _ more: String = "") -> String {
        let writes = documents.map {
            #"{"update":{"name":"\#(Self.documents)/c/\#($0)"},"updateMask":{},"#
                + #""updateTransforms":[{"fieldPath":"n","increment":{"integerValue":"1"}}]}"#
        }
        return #"{"database":"\#(database)","writes":[\#(writes.joined(separator: ","))]\#(more)}"#
    }

    private static func header(_ values: [String]) -> [HTTPHeader] { values.map { HTTPHeader("x-hearth-once", $0) } }

    private func commit(
        _ server: ServedServer, _ json: String, _ values: String..., token: String? = administrator
    ) async throws -> (status: Status, response: [UInt8]) {
        let answer = await server.call(
            "/\(FirestoreService.name)/Commit", [try encoded(CommitRequest.self, json)], token: token,
            metadata: Self.header(values))
        return (answer.status, answer.messages.first ?? [])
    }

    private func number(_ server: ServedServer, _ document: String) async throws -> Value? {
        let answer = try await server.http("GET", "/v1/\(Self.documents)/c/\(document)", token: Self.administrator)
        return try DocumentMessage(json: answer.body).fields["n"]
    }

    @Test func bothTransportsShareTheIds() async throws {
        var server = try await served()
        let first = try await commit(server, Self.increments(["a", "b"]), "e!~")
        #expect(first.status.code == .ok && !first.response.isEmpty)
        #expect(try await commit(server, Self.increments(["a", "b"]), "e!~").response == first.response)
        server.stop()
        server = try await served()
        defer { server.stop() }
        #expect(try await commit(server, Self.increments(["a", "b"]), "e!~").response == first.response)
        func post(_ headers: [HTTPHeader]) async throws -> (status: Int, body: String) {
            try await server.http(
                "POST", "/v1/\(Self.documents):commit", Self.increments(["a", "b"]), token: Self.administrator,
                headers: headers)
        }
        let rest = try await post(Self.header(["e!~"]))
        #expect(try CommitResponse(json: rest.body).protobuf() == first.response)
        #expect(try await number(server, "a") == .integer(1))
        #expect(try await post(Self.header(["f"])).status == 200)
        #expect(try await post(Self.header(["f"])).status == 200)
        #expect(try await number(server, "b") == .integer(2))
        for values in [["ä"], [String(repeating: "x", count: 129)], ["g", "h"]] {
            let refused = try await post(Self.header(values))
            #expect(refused.status == 400 && refused.body.contains("x-hearth-once"), "\(values): \(refused)")
        }
        #expect(try await number(server, "b") == .integer(2))
    }

    /// A request whose memory is counted, and one that a worker decodes.
    @Test(arguments: [100, 2000]) func largeRequestsHaveIdsToo(count: Int) async throws {
        let server = try await served()
        defer { server.stop() }
        let json = Self.increments((0..<count).map { "a\($0)" })
        let first = try await commit(server, json, "e")
        #expect(first.status.code == .ok)
        #expect(try await commit(server, json, "e").response == first.response)
        #expect(try await number(server, "a99") == .integer(1))
    }

    @Test func errorsOverGRPC() async throws {
        let server = try await served()
        defer { server.stop() }
        let one = Self.increments(["a"])
        #expect(try await commit(server, one, "e").status.code == .ok)
        #expect(try await commit(server, Self.increments(["b"]), "e").status.code == .failedPrecondition)
        #expect(try await commit(server, Self.increments(["a", "b"]), "e").status.code == .failedPrecondition)
        for bad in ["", "a b", String(repeating: "x", count: 129)] {
            let status = try await commit(server, one, bad).status
            #expect(status.code == .invalidArgument && status.message.contains("'x-hearth-once'"), "\(bad): \(status)")
        }
        #expect(try await commit(server, one, "e", "e").status.code == .invalidArgument)
        #expect(try await number(server, "a") == .integer(1))
        #expect(try await commit(server, one).status.code == .ok)
        #expect(try await number(server, "a") == .integer(2))
    }

    @Test func onlyAdministratorsMayUseIt() async throws {
        let server = try await served(
            rules: """
                rules_version = '2';
                service cloud.firestore { match /databases/{d}/documents { match /{p=**} { allow write; } } }
                """)
        defer { server.stop() }
        let user = try TokenMint.mint(
            try .secret(Self.key), subject: "alice", issuedAt: SystemClock().now().seconds, seconds: 3600)
        let one = Self.increments(["a"])
        #expect(try await commit(server, one, token: user).status.code == .ok)
        for token in [user, nil, "a secret of a credential that reads", "a secret of a credential of a project"] {
            #expect(try await commit(server, one, "e", token: token).status.code == .permissionDenied)
        }
        #expect(try await commit(server, one, "e").status.code == .ok)
        #expect(try await number(server, "a") == .integer(2))
    }

    @Test func otherWritesRefuseItAndReadsIgnoreIt() async throws {
        let server = try await served()
        defer { server.stop() }
        #expect(try await commit(server, Self.increments(["a"])).status.code == .ok)
        func call(_ method: String, _ type: any WireMessage.Type, _ json: String) async throws -> Status {
            await server.call(
                "/\(FirestoreService.name)/\(method)", [try encoded(type, json)], token: Self.administrator,
                metadata: Self.header(["e"])
            ).status
        }
        let name = "\(Self.documents)/c/a"
        for (method, type, json) in [
            ("BatchWrite", BatchWriteRequest.self as any WireMessage.Type, Self.increments(["a"])),
            ("CreateDocument", CreateDocumentRequest.self, #"{"parent":"\#(Self.documents)","collectionId":"c"}"#),
            ("UpdateDocument", UpdateDocumentRequest.self, #"{"document":{"name":"\#(name)"}}"#),
            ("DeleteDocument", DeleteDocumentRequest.self, #"{"name":"\#(name)"}"#),
            ("Write", WriteRequest.self, #"{"database":"\#(Self.database)"}"#),
        ] {
            let status = try await call(method, type, json)
            #expect(status.code == .invalidArgument && status.message.contains("x-hearth-once"), "\(method): \(status)")
        }
        #expect(try await call("GetDocument", GetDocumentRequest.self, #"{"name":"\#(name)"}"#).code == .ok)
        #expect(try await number(server, "a") == .integer(1))
    }

    /// A Write stream over HTTP requests, whose headers may come in the body, in the URL, or as such.
    @Test(arguments: 0..<3) func webChannelsRefuseIt(way: Int) async throws {
        let server = try await served()
        defer { server.stop() }
        let path = "/google.firestore.v1.Firestore/Write/channel"
        let authorization = "Authorization%3ABearer%20\(Self.administrator.replacing(" ", with: "%20"))%0D%0A"
        let once = "X-Hearth-Once%3Ae%0D%0A"
        let message = #"{"database":"\#(Self.database)"}"#.utf8.map { "%" + String($0, radix: 16) }.joined()
        let began = try await server.http(
            "POST", "\(path)?VER=8&RID=1&CVER=22&t=1" + (way == 1 ? "&$httpHeaders=\(once)" : ""),
            "headers=\(authorization)\(way == 0 ? once : "")&count=1&ofs=0&req0___data__=\(message)",
            headers: [HTTPHeader("content-type", "application/x-www-form-urlencoded")]
                + (way == 2 ? Self.header(["e"]) : []))
        #expect(began.status == 200)
        let parts = began.body.split(separator: "\"", omittingEmptySubsequences: false)
        try #require(parts.count > 3)
        var answers = ""
        // Each request fetches one piece.
        for known in 0..<20 where !answers.contains("x-hearth-once") {
            answers += try await server.http(
                "GET", "\(path)?VER=8&RID=rpc&SID=\(parts[3])&AID=\(known)&CI=1&TYPE=xmlhttp&t=1"
            ).body
        }
        #expect(answers.contains("INVALID_ARGUMENT") && answers.contains("x-hearth-once"), "\(way): \(answers)")
    }

    /// A commit ends its transaction whatever its result.
    @Test func aRefusedCommitEndsItsTransaction() async throws {
        let server = try await served()
        defer { server.stop() }
        #expect(try await commit(server, Self.increments(["a"]), "e").status.code == .ok)
        for id in ["not an id", "e"] {
            let begun = await server.call(
                "/\(FirestoreService.name)/BatchGetDocuments",
                [
                    try encoded(
                        BatchGetDocumentsRequest.self,
                        #"{"database":"\#(Self.database)","documents":["\#(Self.documents)/c/a"],"#
                            + #""newTransaction":{"readWrite":{}}}"#)
                ], token: Self.administrator)
            let transaction = try begun.messages.map { try BatchGetDocumentsResponse(protobuf: $0).transaction }
                .first { !$0.isEmpty }
            let base64 = Base64.encode(try #require(transaction))
            let status = try await commit(server, Self.increments(["a"], #","transaction":"\#(base64)""#), id).status
            #expect(status.code == (id == "e" ? .ok : .invalidArgument))
            // It would wait for the lock, and fail.
            #expect(try await commit(server, Self.increments(["a"])).status.code == .ok)
        }
        #expect(try await number(server, "a") == .integer(3))
    }
}
