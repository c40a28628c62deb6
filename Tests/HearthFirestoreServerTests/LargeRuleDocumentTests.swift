import HearthTestSupport
import HearthModel
import HearthDocuments
import HearthWire
import Testing

@testable import HearthFirestoreServer

/// Rules that read large documents: members are decoded one by one, and workers judge long evaluations.
@Suite("Rules about large documents")
struct LargeRuleDocumentTests {
    /// A list of some thousand elements is more than a loop decodes.
    private static let padding = String(repeating: ".", count: 60)
    private static let path = "\(StreamBench.root)/documents/c/d"

    private func answer(to rule: String) async throws -> Status.Code? {
        let bench = try StreamBench(
            rules: "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents { match /c/{x} { "
                + "allow read: if \(rule); } } }")
        let names = MapValue((0..<1000).map { MapValue.Field(name: "k\($0)", value: .integer(Int64($0))) })
        let list = (0..<6000).map { Value.string("e\($0)" + Self.padding) }
        let fields = MapValue([
            MapValue.Field(name: "list", value: .array(list)), MapValue.Field(name: "map", value: .map(names)),
            MapValue.Field(name: "n", value: .integer(7)),
        ])
        try await bench.database.commit([
            Write(
                document: ResourceName(database: StreamBench.name, path: ResourcePath(["c", "d"])),
                operation: .update(fields: fields, mask: nil), transforms: [], precondition: .none)
        ])
        let call = TestCall(bench.loop, identity: .nobody)
        let request = try GetDocumentRequest(json: Array(#"{"name":"\#(Self.path)"}"#.utf8), at: "")
        await call.run { bench.service.getDocument(request, call) }
        await until { call.end != nil }
        return call.end?.code
    }

    @Test(
        "hold as they do of small ones",
        arguments: [
            "resource.data.n == 7", "resource.data.map.k999 == 999", "resource.data.map['k12'] == 12",
            "resource.data.map.size() == 1000", "'k5' in resource.data.map", "!('none' in resource.data)",
            "resource.data.keys().hasAll(['list', 'map', 'n'])", "resource.data.get('n', 0) == 7",
            // More than a loop decodes: a worker judges.
            "'e5999\(padding)' in resource.data.list", "resource.data.list.size() == 6000",
            "get(/databases/$(d)/documents/c/d).data.list.size() == 6000",
        ])
    func allowed(_ rule: String) async throws {
        #expect(try await answer(to: rule) == .ok, "\(rule)")
        #expect(try await answer(to: "!(\(rule))") == .permissionDenied, "\(rule)")
    }
}
