import HearthTestSupport
import HearthModel
import HearthDocuments
import HearthWire
import Testing

@testable import HearthFirestoreServer

@Suite struct AdminIndexTests {
    private static let ab = #"""
        {"queryScope": "COLLECTION", "fields": [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "DESCENDING"}]}
        """#

    @Test func anIndexIsCreatedListedAndDeleted() async throws {
        let harness = AdminHarness()
        let indexes = "\(harness.root)/collectionGroups/c/indexes"
        for number in 0..<700 {
            try await harness.database.put("c/\(number)", ["a": .integer(Int64(number % 7)), "b": .integer(1)])
        }
        let operation = try await harness.call("POST", indexes, Self.ab, as: OperationMessage.self)
        #expect(operation.name.hasPrefix("\(harness.root)/operations/"))
        let begun = try #require(try operation.metadata?.unpacked(IndexOperationMetadata.self))
        #expect(begun.index.hasPrefix(indexes + "/"))
        #expect(begun.state == .processing)

        let ended = try await harness.end(of: operation)
        let made = try #require(try ended.response?.unpacked(IndexMessage.self))
        #expect(made.state == .ready)
        #expect(made.name == begun.index)
        #expect(made.density == .sparseAll)
        #expect(made.fields.map(\.fieldPath) == ["a", "b", "__name__"])
        #expect(made.fields.map(\.order) == [.ascending, .descending, .descending])
        #expect(try ended.metadata?.unpacked(IndexOperationMetadata.self)?.state == .successful)

        #expect(try await harness.call("GET", made.name, as: IndexMessage.self).state == .ready)
        let list = try await harness.call("GET", indexes, as: ListIndexesResponse.self)
        #expect(list.indexes.map(\.name) == [made.name])
        let all = try await harness.call(
            "GET", "\(harness.root)/collectionGroups/-/indexes", as: ListIndexesResponse.self)
        #expect(all.indexes.map(\.name) == [made.name])
        let others = try await harness.call(
            "GET", "\(harness.root)/collectionGroups/d/indexes", as: ListIndexesResponse.self)
        #expect(others.indexes.isEmpty)

        #expect(try await harness.call("DELETE", made.name) == Array("{}".utf8))
        #expect(try await harness.refusal("GET", made.name)?.code == .notFound)
        #expect(try harness.database.catalog.definitions.isEmpty)
    }

    @Test func creatingAnExistingIndexFails() async throws {
        let harness = AdminHarness()
        let indexes = "\(harness.root)/collectionGroups/c/indexes"
        _ = try await harness.call("POST", indexes, Self.ab)
        // `__name__` in its default direction changes nothing.
        let same = Self.ab.replacing(
            "DESCENDING\"}]", with: "DESCENDING\"}, {\"fieldPath\": \"__name__\", \"order\": \"DESCENDING\"}]")
        for body in [Self.ab, same] {
            #expect(
                try await harness.refusal("POST", indexes, body) == Status(.alreadyExists, "index already exists"))
        }
        let other = same.replacing("__name__\", \"order\": \"DESC", with: "__name__\", \"order\": \"ASC")
        #expect(try await harness.refusal("POST", indexes, other) == nil)
    }

    @Test func concurrentCreationsBothSucceed() async throws {
        let harness = AdminHarness()
        let indexes = "\(harness.root)/collectionGroups/c/indexes"
        try await withThrowingTaskGroup(of: Void.self) { group in
            let admin = harness.admin
            let parent = indexes.dropLast("/indexes".count)
            for number in 0..<20 {
                var index = IndexMessage(queryScope: .collection)
                index.fields = [
                    .init(fieldPath: "a", order: .ascending), .init(fieldPath: "f\(number)", order: .ascending),
                ]
                let request = CreateIndexRequest(parent: String(parent), index: index)
                group.addTask {
                    _ = try await withCheckedContinuation { continuation in
                        do throws(Status) {
                            try admin.createIndex(request) { continuation.resume(returning: $0) }
                        } catch {
                            continuation.resume(returning: .failure(error))
                        }
                    }.get()
                }
            }
            try await group.waitForAll()
        }
        let database = try harness.database
        await until { database.catalog.definitions.allSatisfy { $0.state == .ready } }
        #expect(database.catalog.definitions.count == 20)
    }

    @Test func refusals() async throws {
        let harness = AdminHarness()
        func index(_ fields: String, scope: String = "COLLECTION") -> String {
            #"{"queryScope": "\#(scope)", "fields": [\#(fields)]}"#
        }
        let a = #"{"fieldPath": "a", "order": "ASCENDING"}"#
        let b = #"{"fieldPath": "b", "order": "ASCENDING"}"#
        let cases: [(body: String, words: String)] = [
            (index(a), "this index is not necessary, configure using single field index controls"),
            (
                index(#"{"fieldPath":"a","arrayConfig":"CONTAINS"},{"fieldPath":"b","arrayConfig":"CONTAINS"}"#),
                "at most one"
            ),
            (index(""), "needs a field"),
            (index(a + "," + b, scope: "COLLECTION_RECURSIVE"), "queryScope"),
            (#"{"fields": [\#(a), \#(b)]}"#, "queryScope"),
            (index(#"{"fieldPath": "a"},\#(b)"#), "needs one of order"),
            (index(#"{"fieldPath": "a..", "order": "ASCENDING"},\#(b)"#), "a.."),
            (#"{"queryScope": "COLLECTION", "unique": true, "fields": [\#(a), \#(b)]}"#, "Enterprise"),
            (#"{"queryScope": "COLLECTION", "density": "DENSE", "fields": [\#(a), \#(b)]}"#, "density"),
            (#"{"queryScope": "COLLECTION", "colour": 1}"#, "Unknown name \"colour\""),
            ("[", "Invalid JSON"),
            (
                index((0..<101).map { #"{"fieldPath": "f\#($0)", "order": "ASCENDING"}"# }.joined(separator: ",")),
                "at most 100"
            ),
        ]
        for (body, words) in cases {
            let status = try await harness.refusal("POST", "\(harness.root)/collectionGroups/c/indexes", body)
            #expect(status?.code == .invalidArgument, "\(body)")
            #expect(status?.message.contains(words) == true, "\(body): \(status?.message ?? "")")
        }
        let valid = index(a + "," + b)
        for (path, code) in [
            ("\(harness.root)/collectionGroups/-/indexes", Status.Code.invalidArgument),
            ("\(harness.root)/collectionGroups/__x__/indexes", .invalidArgument),
        ] {
            #expect(try await harness.refusal("POST", path, valid)?.code == code)
        }
        let query = [(name: "colour", value: "red")]
        #expect(
            try await harness.refusal("POST", "\(harness.root)/collectionGroups/c/indexes", valid, query: query)?.code
                == .invalidArgument)
        for id in ["CICAgIAB", "x", "CICAgOjXh4EK"] {
            #expect(
                try await harness.refusal("GET", "\(harness.root)/collectionGroups/c/indexes/\(id)")?.code == .notFound)
        }
    }

    @Test func vectorAndGroupIndexes() async throws {
        let harness = AdminHarness()
        let indexes = "\(harness.root)/collectionGroups/c/indexes"
        let bodies = [
            #"{"queryScope": "COLLECTION", "fields": [{"fieldPath": "v", "vectorConfig": {"dimension": 3, "flat": {}}}]}"#,
            #"{"queryScope": "COLLECTION_GROUP", "fields": [{"fieldPath": "a", "order": "DESCENDING"}]}"#,
        ]
        for body in bodies {
            let operation = try await harness.call("POST", indexes, body, as: OperationMessage.self)
            #expect(try await harness.end(of: operation).error == nil)
        }
        let list = try await harness.call("GET", indexes, as: ListIndexesResponse.self).indexes
        #expect(list.map { $0.fields.map(\.fieldPath) } == [["__name__", "v"], ["a", "__name__"]])
        #expect(list.map(\.queryScope) == [.collection, .collectionGroup])
    }

    @Test func pages() async throws {
        let harness = AdminHarness()
        let indexes = "\(harness.root)/collectionGroups/c/indexes"
        for number in 0..<5 {
            _ = try await harness.call(
                "POST", indexes,
                #"{"queryScope": "COLLECTION", "fields": [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "f\#(number)", "order": "ASCENDING"}]}"#
            )
        }
        var seen: [String] = []
        var token = ""
        repeat {
            let page = try await harness.call(
                "GET", indexes, query: [("pageSize", "2"), ("pageToken", token)], as: ListIndexesResponse.self)
            #expect(page.indexes.count <= 2)
            seen += page.indexes.map(\.name)
            token = page.nextPageToken
        } while !token.isEmpty
        #expect(Set(seen).count == 5 && seen.count == 5)
        #expect(try await harness.refusal("GET", indexes, query: [("pageToken", "x")])?.code == .invalidArgument)
        #expect(try await harness.refusal("GET", indexes, query: [("pageSize", "-1")])?.code == .invalidArgument)
    }

    /// Each change writes all definitions, so that large ones are bounded by their bytes.
    @Test func definitionsHaveABound() async throws {
        let harness = AdminHarness()
        let long = String(repeating: "f", count: 1490)
        func create(_ group: Int) async throws -> Status? {
            let fields = (0..<100).map { #"{"fieldPath": "\#(long)\#($0)", "order": "ASCENDING"}"# }
            let body = #"{"queryScope": "COLLECTION", "fields": [\#(fields.joined(separator: ","))]}"#
            return try await harness.refusal("POST", "\(harness.root)/collectionGroups/g\(group)/indexes", body)
        }
        var count = 0
        while try await create(count) == nil { count += 1 }
        #expect((20...28).contains(count))
        #expect(try await create(count)?.code == .resourceExhausted)
        let small = #"{"queryScope": "COLLECTION_GROUP", "fields": [{"fieldPath": "a", "order": "ASCENDING"}]}"#
        #expect(try await harness.refusal("POST", "\(harness.root)/collectionGroups/s/indexes", small) == nil)
        let list = try await harness.call(
            "GET", "\(harness.root)/collectionGroups/g0/indexes", as: ListIndexesResponse.self)
        #expect(try await harness.refusal("DELETE", list.indexes[0].name) == nil)
        #expect(try await create(count) == nil)
    }

    @Test func idsHaveTheFormatOfTheService() {
        for id: UInt32 in [0, 1, 2, 127, 128, 65_535, .max] {
            #expect(IndexName.decode(IndexName.encode(id)) == id)
        }
        #expect(IndexName.encode(1) == "CICAgIAB")
        #expect(IndexName.decode("CICAgIABx") == nil)
    }

    @Test func theSameOverGRPC() async throws {
        let harness = AdminHarness()
        let path = "/google.firestore.admin.v1.FirestoreAdmin/ListIndexes"
        let list = try #require(AdminMethods.all.first { $0.path == path })
        let request = ListIndexesRequest(parent: "\(harness.root)/collectionGroups/-").protobuf()
        func answer(_ request: [UInt8]) async -> Result<[UInt8], Status> {
            await withCheckedContinuation { continuation in
                do throws(Status) {
                    try list.serve(request, harness.admin, { _, _ in }) { continuation.resume(returning: $0) }
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        #expect(try ListIndexesResponse(protobuf: try await answer(request).get()).indexes.isEmpty)
        await #expect(throws: Status.self) { try await answer([0xFF, 0xFF]).get() }
    }
}
