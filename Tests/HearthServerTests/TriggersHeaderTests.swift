@testable import HearthFirestoreServer
import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire
import Synchronization
import Testing

@testable import HearthServer

/// The header `x-hearth-disable-triggers` over gRPC and REST.
@Suite struct TriggersHeaderTests {
    private static let database = "projects/p/databases/(default)"
    private static let administrator = "a secret of an administrator's credential"
    private static let reader = "a secret of a credential that reads"

    /// Counts the documents of commits that make events.
    private final class CountingRecorder: EventRecorder {
        let documents = Atomic(0)

        func record(_ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction) {
            documents.add(set.changes.count, ordering: .relaxed)
        }

        func ended(isDurable: Bool) {}
        func clear(in transaction: any StoreTransaction) {}
        var neededVersion: Int64? { nil }
    }

    private static func commit(_ document: String) -> String {
        #"{"database":"\#(database)","writes":[{"update":{"name":"\#(database)/documents/c/\#(document)"}}]}"#
    }

    private func served() async throws -> ServedServer {
        try await ServedServer { configuration in
            configuration.isEmulator = false
            configuration.project = "p"
            configuration.identity.credentials = [
                .init(name: "all", secret: Self.administrator),
                .init(name: "read", secret: Self.reader, isReadOnly: true),
            ]
        }
    }

    private static func header(_ values: [String]) -> [HTTPHeader] {
        values.map { HTTPHeader(TriggersHeader.name, $0) }
    }

    @Test func commitsWithItMakeNoEvents() async throws {
        let server = try await served()
        defer { server.stop() }
        let recorder = CountingRecorder()
        let database = try server.server.registry.database(DatabaseName(project: "p"))
        database.setRecorder(recorder)
        let cases: [(values: [String], events: Int)] = [(["true"], 0), (["false"], 1), ([], 1)]
        for (number, (values, events)) in cases.enumerated() {
            let before = recorder.documents.load(ordering: .relaxed)
            let message = try encoded(CommitRequest.self, Self.commit("grpc\(number)"))
            let answer = await server.call(
                "/\(FirestoreService.name)/Commit", [message], token: Self.administrator,
                metadata: Self.header(values))
            #expect(answer.status.code == .ok, "\(values): \(answer.status)")
            #expect(recorder.documents.load(ordering: .relaxed) - before == events, "\(values)")
            let rest = try await server.http(
                "POST", "/v1/\(Self.database)/documents:commit", Self.commit("rest\(number)"),
                token: Self.administrator, headers: Self.header(values))
            #expect(rest.status == 200, "\(values): \(rest.body)")
            #expect(recorder.documents.load(ordering: .relaxed) - before == 2 * events, "\(values)")
        }
        #expect(try database.view().document(ResourcePath(["c", "grpc0"])) != nil)
    }

    @Test func othersAreRefused() async throws {
        let server = try await served()
        defer { server.stop() }
        func status(
            _ method: String, _ type: any WireMessage.Type, _ json: String, _ values: [String], _ token: String?
        ) async throws -> Status.Code {
            await server.call(
                "/\(FirestoreService.name)/\(method)", [try encoded(type, json)], token: token,
                metadata: Self.header(values)
            ).status.code
        }
        let commit = Self.commit("a")
        #expect(try await status("Commit", CommitRequest.self, commit, ["true"], Self.administrator) == .ok)
        for token in [Self.reader, nil] {
            let code = try await status("Commit", CommitRequest.self, commit, ["true"], token)
            #expect(code == .permissionDenied)
        }
        for values in [["yes"], [""], ["true", "true"]] {
            let code = try await status("Commit", CommitRequest.self, commit, values, Self.administrator)
            #expect(code == .invalidArgument, "\(values)")
        }
        let name = "\(Self.database)/documents/c/a"
        for (method, type, json) in [
            ("BatchWrite", BatchWriteRequest.self as any WireMessage.Type, commit),
            (
                "CreateDocument", CreateDocumentRequest.self,
                #"{"parent":"\#(Self.database)/documents","collectionId":"c"}"#
            ),
            ("UpdateDocument", UpdateDocumentRequest.self, #"{"document":{"name":"\#(name)"}}"#),
            ("DeleteDocument", DeleteDocumentRequest.self, #"{"name":"\#(name)"}"#),
            ("Write", WriteRequest.self, #"{"database":"\#(Self.database)"}"#),
        ] {
            #expect(try await status(method, type, json, ["true"], Self.administrator) == .invalidArgument, "\(method)")
        }
    }
}
