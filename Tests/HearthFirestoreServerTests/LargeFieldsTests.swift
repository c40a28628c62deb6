import HearthModel
import HearthRules
import HearthDocuments
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

/// Rules that read members of large documents, which are not decoded as a whole.
@Suite("Large documents that rules read")
struct LargeFieldsTests {
    private static let user = Identity.client(ClientIdentity(uid: "alice", token: MapValue(), end: nil, projects: .all))

    private func access(_ condition: String) throws -> AccessControl {
        let rules = RulesRegistry()
        let source = """
            rules_version = '2';
            service cloud.firestore { match /databases/{db}/documents {
              match /c/{id} { allow read: if \(condition); }
            } }
            """
        rules.setFile(try #require(Ruleset.compile(source).ruleset), database: "(default)")
        return AccessControl(rules: rules, isEmulator: false, project: "p")
    }

    /// The two encodings of "é" are names of different members.
    @Test(arguments: [10, 20_000]) func namesAreComparedByTheirBytes(padding: Int) async throws {
        let access = try access("get(/databases/$(db)/documents/acl/x).data[id] == request.auth.uid")
        let bench = try StreamBench()
        let names = ["caf\u{e9}", "cafe\u{301}"]
        for name in names { try await bench.database.put("c/\(name)", ["n": .integer(1)]) }
        let fields = [
            MapValue.Field(name: names[0], value: .string("alice")),
            MapValue.Field(name: names[1], value: .string("bob")),
            MapValue.Field(name: "pad", value: .string(String(repeating: "p", count: padding))),
        ]
        let document = ResourceName(database: StreamBench.name, path: ResourcePath(["acl", "x"]))
        try await bench.database.commit([
            Write(
                document: document, operation: .update(fields: MapValue(fields), mask: nil), transforms: [],
                precondition: .none)
        ])
        let paths = names.map { ResourcePath(["c", $0]) }
        let view = try bench.database.view()
        try access.get([paths[0]], Self.user, StreamBench.name, StateReader(view))
        #expect(throws: AccessControl.denied) {
            try access.get([paths[1]], Self.user, StreamBench.name, StateReader(view))
        }
        #expect(throws: AccessControl.denied) { try access.get(paths, Self.user, StreamBench.name, StateReader(view)) }
    }

    /// The limit of a loop's judgement also counts names that are skipped, and documents that are only read.
    @Test func skippingManyNamesCounts() async throws {
        let bench = try StreamBench()
        var fields: [String: Value] = [:]
        for number in 0..<4000 { fields["a\(number)"] = .null }
        for number in 0..<6 { try await bench.database.put("c/\(number)", fields) }
        let paths = (0..<6).map { ResourcePath(["c", "\($0)"]) }
        let view = try bench.database.view()
        let condition = (0..<30).map { "resource.data.get('z\($0)', 0) == 0" }.joined(separator: " && ")
        let access = try access(condition)
        try access.get(
            [paths[0]], Self.user, StreamBench.name, StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax))
        #expect(throws: WorkMeter.isHeavier) {
            try access.get(
                paths, Self.user, StreamBench.name, StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax))
        }
        try access.get(paths, Self.user, StreamBench.name, StateReader(view))
    }

    @Test func readingManyLargeDocumentsCounts() async throws {
        let bench = try StreamBench()
        let string = Value.string(String(repeating: "x", count: 500_000))
        for number in 0..<20 { try await bench.database.put("c/\(number)", ["body": string]) }
        let paths = (0..<20).map { ResourcePath(["c", "\($0)"]) }
        let view = try bench.database.view()
        let access = try access("true")
        try access.get(
            Array(paths[..<4]), Self.user, StreamBench.name,
            StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax))
        #expect(throws: WorkMeter.isHeavier) {
            try access.get(
                paths, Self.user, StreamBench.name, StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax))
        }
    }
}
