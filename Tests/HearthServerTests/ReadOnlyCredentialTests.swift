import HearthModel
import HearthWire
import Testing

@testable import HearthServer

/// A credential that may only read keeps no writer waiting: it begins no transaction that locks, in any of the ways in which
/// one begins.
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

    @Test func beginsNoTransactionThatLocks() async throws {
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
        let made = await server.call("/\(FirestoreService.name)/Commit", [commit], token: Self.administrator)
        try #require(made.status.code == .ok)
        for (options, code) in [(#"{"readWrite":{}}"#, Status.Code.permissionDenied), (#"{"readOnly":{}}"#, .ok)] {
            for (method, type, json) in Self.requests(options) {
                let answer = await server.call(
                    "/\(FirestoreService.name)/\(method)", [try encoded(type, json)], token: Self.secret)
                #expect(answer.status.code == code, "\(method) with \(options): \(answer.status)")
            }
        }
    }
}
