@testable import HearthFirestoreServer
import HearthModel
import HearthWire
import Testing

@testable import HearthServer

/// A read-only credential does not make writers wait: its transactions lock nothing, however they begin.
@Suite struct ReadOnlyCredentialTests {
    private static let database = "projects/p/databases/(default)"
    private static let secret = "a secret of a credential that only reads"
    private static let administrator = "a secret of an administrator's credential"

    private static func requests(_ options: String) -> [(method: String, type: any WireMessage.Type, json: String)] {
        let documents = "\(database)/documents"
        let query = #""structuredQuery":{"from":[{"collectionId":"c"}]}"#
        return [
            ("BeginTransaction", BeginTransactionRequest.self, #"{"database":"\#(database)","options":\#(options)}"#),
            (
                "BatchGetDocuments", BatchGetDocumentsRequest.self,
                #"{"database":"\#(database)","documents":["\#(documents)/c/d"],"newTransaction":\#(options)}"#
            ),
            ("RunQuery", RunQueryRequest.self, #"{"parent":"\#(documents)",\#(query),"newTransaction":\#(options)}"#),
            (
                "RunAggregationQuery", RunAggregationQueryRequest.self,
                #"{"parent":"\#(documents)","structuredAggregationQuery":{\#(query),"aggregations":[{"alias":"n","#
                    + #""count":{}}]},"newTransaction":\#(options)}"#
            ),
        ]
    }

    @Test func locksNothing() async throws {
        let server = try await ServedServer { configuration in
            configuration.isEmulator = false
            configuration.project = "p"
            configuration.identity.credentials = [
                .init(name: "all", secret: Self.administrator),
                .init(name: "read", secret: Self.secret, isReadOnly: true),
            ]
        }
        defer { server.stop() }
        let commit = try encoded(
            CommitRequest.self,
            #"{"database":"\#(Self.database)","writes":[{"update":{"name":"\#(Self.database)/documents/c/d"}}]}"#)
        func write() async -> Status {
            await server.call("/\(FirestoreService.name)/Commit", [commit], token: Self.administrator).status
        }
        try #require(await write().code == .ok)
        for options in [#"{"readWrite":{}}"#, #"{"readWrite":{"concurrencyMode":"PESSIMISTIC"}}"#, #"{"readOnly":{}}"#]
        {
            for (method, type, json) in Self.requests(options) {
                let answer = await server.call(
                    "/\(FirestoreService.name)/\(method)", [try encoded(type, json)], token: Self.secret)
                #expect(answer.status.code == .ok, "\(method) with \(options): \(answer.status)")
            }
        }
        // It would fail if it had waited for a lock.
        #expect(await write().code == .ok)
        let refused = await server.call("/\(FirestoreService.name)/Commit", [commit], token: Self.secret)
        #expect(refused.status.code == .permissionDenied)
    }
}
