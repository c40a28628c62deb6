import HearthModel
import HearthEngine
import HearthDocuments
import HearthWire
import Testing

@testable import HearthFirestoreServer

@Suite struct AdminFieldTests {
    private let harness = AdminHarness()
    private var fields: String { "\(harness.root)/collectionGroups/c/fields" }
    private var defaults: String { "\(harness.root)/collectionGroups/__default__/fields/*" }

    private func update(_ path: String, _ body: String, mask: String? = "indexConfig") async throws -> OperationMessage
    {
        let query = mask.map { [(name: "updateMask", value: $0)] } ?? []
        let operation = try await harness.call(
            "PATCH", "\(fields)/\(path)", body, query: query, as: OperationMessage.self)
        return try await harness.end(of: operation)
    }

    @Test func anUnsetFieldInherits() async throws {
        let field = try await harness.call("GET", "\(fields)/a.b", as: FieldMessage.self)
        #expect(field.indexConfig?.usesAncestorConfig == true)
        #expect(field.indexConfig?.ancestorField == defaults)
        #expect(field.indexConfig?.indexes.count == 3)
        #expect(field.ttlConfig == nil)
        let top = try await harness.call("GET", defaults, as: FieldMessage.self)
        #expect(top.indexConfig?.usesAncestorConfig == false)
        #expect(top.indexConfig?.indexes.map { $0.fields[0].fieldPath } == ["*", "*", "*"])
        #expect(top.indexConfig?.indexes.map(\.state) == [.ready, .ready, .ready])
    }

    @Test func exemptionOverrideAndReset() async throws {
        let exempt = try await update("body", #"{"indexConfig": {"indexes": []}}"#)
        #expect(try exempt.response?.unpacked(FieldMessage.self)?.indexConfig?.indexes.isEmpty == true)
        let metadata = try #require(try exempt.metadata?.unpacked(FieldOperationMetadata.self))
        #expect(metadata.state == .successful)
        #expect(metadata.indexConfigDeltas.map(\.changeType) == [.remove, .remove, .remove])
        #expect(
            try harness.database.catalog.overrides == [
                FieldOverride(collectionID: "c", path: FieldPath("body"), indexes: [])
            ])

        _ = try await update(
            "body",
            #"{"indexConfig": {"indexes": [{"queryScope": "COLLECTION_GROUP", "fields": [{"fieldPath": "body", "order": "ASCENDING"}]}]}}"#
        )
        let field = try await harness.call("GET", "\(fields)/body", as: FieldMessage.self)
        #expect(field.indexConfig?.indexes.map(\.queryScope) == [.collectionGroup])
        #expect(field.indexConfig?.usesAncestorConfig == false)
        // A collection-group index of one field belongs to the field, and is not listed among composite indexes.
        #expect(try harness.database.catalog.definitions.count == 1)
        let list = try await harness.call(
            "GET", "\(harness.root)/collectionGroups/c/indexes", as: ListIndexesResponse.self)
        #expect(list.indexes.isEmpty)

        _ = try await update("body", "{}", mask: nil)
        #expect(try harness.database.catalog.overrides.isEmpty)
        #expect(try harness.database.catalog.definitions.isEmpty)
    }

    @Test func membersInheritFromTheNearestPathAbove() async throws {
        _ = try await update(
            "*", #"{"indexConfig": {"indexes": [{"fields": [{"fieldPath": "*", "order": "ASCENDING"}]}]}}"#)
        _ = try await update("a", #"{"indexConfig": {}}"#)
        let member = try await harness.call("GET", "\(fields)/a.b.c", as: FieldMessage.self)
        #expect(member.indexConfig?.ancestorField == "\(fields)/a")
        #expect(member.indexConfig?.indexes.isEmpty == true)
        let other = try await harness.call("GET", "\(fields)/z", as: FieldMessage.self)
        #expect(other.indexConfig?.ancestorField == "\(fields)/*")
        #expect(other.indexConfig?.indexes.count == 1)
    }

    @Test func timeToLive() async throws {
        _ = try await update("until", #"{"ttlConfig": {}}"#, mask: "ttlConfig")
        let field = try await harness.call("GET", "\(fields)/until", as: FieldMessage.self)
        #expect(field.ttlConfig?.state == .active)
        #expect(field.indexConfig?.usesAncestorConfig == true)
        let second = try await harness.refusal(
            "PATCH", "\(fields)/later", #"{"ttlConfig": {}}"#, query: [("updateMask", "ttlConfig")])
        #expect(second?.code == .failedPrecondition)
        // Changes of the index configuration keep it, and its removal keeps the indexes.
        _ = try await update("until", #"{"indexConfig": {"indexes": []}}"#)
        #expect(try await harness.call("GET", "\(fields)/until", as: FieldMessage.self).ttlConfig != nil)
        _ = try await update("until", "{}", mask: "ttlConfig")
        let after = try await harness.call("GET", "\(fields)/until", as: FieldMessage.self)
        #expect(after.ttlConfig == nil)
        #expect(after.indexConfig?.usesAncestorConfig == false)
    }

    @Test func anOffsetOfTheTimeToLive() async throws {
        let added = try await update("until", #"{"ttlConfig": {"expirationOffset": "3600s"}}"#, mask: "ttlConfig")
        let metadata = try #require(try added.metadata?.unpacked(FieldOperationMetadata.self))
        let hour = DurationMessage(seconds: 3600)
        #expect(metadata.ttlConfigDelta?.changeType == .add && metadata.ttlConfigDelta?.expirationOffset == hour)
        #expect(metadata.indexConfigDeltas.isEmpty)
        let field = try await harness.call("GET", "\(fields)/until", as: FieldMessage.self)
        #expect(field.ttlConfig?.state == .active && field.ttlConfig?.expirationOffset == hour)
        let removed = try await update("until", "{}", mask: "ttlConfig")
        let ended = try #require(try removed.metadata?.unpacked(FieldOperationMetadata.self))
        #expect(ended.ttlConfigDelta?.changeType == .remove && ended.ttlConfigDelta?.expirationOffset == nil)
        for offset in ["-1s", "0.5s", "2147483648s"] {
            let refusal = try await harness.refusal(
                "PATCH", "\(fields)/until", #"{"ttlConfig": {"expirationOffset": "\#(offset)"}}"#,
                query: [("updateMask", "ttlConfig")])
            #expect(refusal?.code == .invalidArgument, "\(offset)")
        }
    }

    @Test func lists() async throws {
        _ = try await update("body", #"{"indexConfig": {}}"#)
        _ = try await update("until", #"{"ttlConfig": {}}"#, mask: "ttlConfig")
        let all = "\(harness.root)/collectionGroups/-/fields"
        let cases: [(filter: String, names: [String])] = [
            ("indexConfig.usesAncestorConfig:false", [defaults, "\(fields)/body"]),
            ("indexConfig.usesAncestorConfig=false OR ttlConfig:*", [defaults, "\(fields)/body", "\(fields)/until"]),
            ("ttlConfig:*", ["\(fields)/until"]),
        ]
        for (filter, names) in cases {
            let list = try await harness.call("GET", all, query: [("filter", filter)], as: ListFieldsResponse.self)
            #expect(list.fields.map(\.name) == names, "\(filter)")
        }
        #expect(try await harness.refusal("GET", all, query: [("filter", "name:x")])?.code == .invalidArgument)
    }

    @Test func refusals() async throws {
        let cases: [(path: String, body: String, mask: String?, code: Status.Code)] = [
            ("a", "{}", "name", .invalidArgument),
            ("__name__", "{}", nil, .invalidArgument),
            ("a..b", "{}", nil, .invalidArgument),
            ("*", #"{"ttlConfig": {}}"#, "ttlConfig", .invalidArgument),
            ("a", #"{"indexConfig": {"indexes": [{"fields": []}]}}"#, nil, .invalidArgument),
            (
                "a", #"{"indexConfig": {"indexes": [{"fields": [{"fieldPath": "b", "order": "ASCENDING"}]}]}}"#, nil,
                .invalidArgument
            ),
        ]
        for (path, body, mask, code) in cases {
            let query = mask.map { [(name: "updateMask", value: $0)] } ?? []
            let status = try await harness.refusal("PATCH", "\(fields)/\(path)", body, query: query)
            #expect(status?.code == code, "\(path) \(body): \(status?.description ?? "accepted")")
        }
        #expect(try await harness.refusal("PATCH", defaults, "{}")?.code == .unimplemented)
    }

    @Test func entriesFollowTheConfiguration() async throws {
        let database = try harness.database
        try await database.put("c/d", ["body": .string("x"), "a": .integer(1)])
        func entries() throws -> Int {
            let snapshot = try database.store.snapshot()
            defer { snapshot.close() }
            return try snapshot.count(.entries, KeyRange(lower: [], upper: nil), limit: 100)
        }
        let before = try entries()
        _ = try await update("body", #"{"indexConfig": {"indexes": []}}"#)
        #expect(try entries() < before)
        _ = try await update("body", "{}")
        #expect(try entries() == before)
    }
}
