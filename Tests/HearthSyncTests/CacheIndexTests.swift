import Foundation
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthSync

@Suite("Client-side indexes: encoding, definitions, states")
struct CacheIndexTests {
    // MARK: Values

    private func groups() throws -> [[Value]] {
        let file = try #require(try Conformance.json("value-ordering", "groups.json") as? [String: Any])
        return try #require(file["groups"] as? [[String: Any]]).map { group in
            try #require(group["values"] as? [Any]).map { value in
                let fields = try JSONSerialization.data(withJSONObject: ["fields": ["v": value]])
                return try #require(try DocumentMessage(json: Array(fields)).fields["v"])
            }
        }
    }

    @Test("Encoded values have the order of values, ascending and descending")
    func order() throws {
        let groups = try groups()
        #expect(groups.count > 40)
        let encoded = groups.map { $0.map { ClientIndexValue($0).bytes } }
        for (index, group) in encoded.enumerated() {
            #expect(Set(group).count == 1, "equal values are encoded differently: \(groups[index])")
            for other in encoded[(index + 1)...] {
                let (left, right) = (group[0], other[0])
                #expect(left.lexicographicallyPrecedes(right), "\(groups[index][0])")
                #expect(!right.starts(with: left) && !left.starts(with: right))
                #expect(ClientIndexValue.inverted(right).lexicographicallyPrecedes(ClientIndexValue.inverted(left)))
            }
        }
    }

    @Test("Pending server timestamps sort between timestamps and strings, at any depth")
    func pending() {
        func pending(_ seconds: Int64) -> Value {
            PendingServerTimestamp(localWriteTime: .seconds(seconds), previousValue: .string("p")).value
        }
        let ordered: [Value] = [
            .timestamp(.seconds(9000)), pending(-1), pending(1), pending(2), .string(""), .array([pending(5)]),
            .array([.string("")]), .map(MapValue(["a": .timestamp(.seconds(1))])), .map(MapValue(["a": pending(1)])),
            .map(MapValue(["a": .string("")])),
        ]
        for (left, right) in zip(ordered, ordered.dropFirst()) {
            #expect(ClientValueOrder.compare(left, right) < 0)
            #expect(ClientIndexValue(left).bytes.lexicographicallyPrecedes(ClientIndexValue(right).bytes))
        }
    }

    // MARK: Configuration

    @Test("The configuration's format")
    func configuration() throws {
        let string = """
            {"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
              {"fieldPath": "a.`b c`", "order": "ASCENDING"}, {"fieldPath": "t", "arrayConfig": "CONTAINS"},
              {"fieldPath": "d", "order": "DESCENDING"}, {"fieldPath": "e", "order": "OTHER"}]}],
             "fieldOverrides": [{"anything": 1}]}
            """
        let indexes = try ClientIndexConfiguration(json: string).indexes
        #expect(indexes.count == 1)
        #expect(indexes.first?.collectionGroup == "c")
        #expect(indexes.first?.segments.map(\.path.string) == ["a.`b c`", "t", "d", "e"])
        #expect(indexes.first?.segments.map(\.kind) == [.ascending, .contains, .descending, .descending])
        #expect(try ClientIndexConfiguration(json: "{\"indexes\": []}").indexes.isEmpty)
    }

    @Test(
        "An invalid configuration is INVALID_ARGUMENT with the location",
        arguments: [
            ("", "not a JSON object"), ("[]", "not a JSON object"), ("{}", "indexes must be a list"),
            ("{\"indexes\": 1}", "indexes must be"),
            ("{\"indexes\": [1]}", "indexes[0] must be an object"),
            ("{\"indexes\": [{\"fields\": [{\"fieldPath\": \"a\"}]}]}", "indexes[0].collectionGroup"),
            ("{\"indexes\": [{\"collectionGroup\": \"c\"}]}", "indexes[0].fields must be a list"),
            ("{\"indexes\": [{\"collectionGroup\": \"c\", \"fields\": []}]}", "must not be empty"),
            ("{\"indexes\": [{\"collectionGroup\": \"c\", \"fields\": [{}]}]}", "indexes[0].fields[0].fieldPath"),
            (
                "{\"indexes\": [{\"collectionGroup\": \"c\", \"fields\": [{\"fieldPath\": \"a..b\"}]}]}",
                "fieldPath cannot be read"
            ),
            (
                "{\"indexes\": [{\"collectionGroup\": \"c\", \"fields\": [{\"fieldPath\": \"a\"}]}]}",
                "fields[0].order must be"
            ),
        ])
    func badConfiguration(_ string: String, _ words: String) throws {
        let failure = try #require(status { _ = try ClientIndexConfiguration(json: string) })
        #expect(failure.code == .invalidArgument)
        #expect(failure.message.contains(words), "\(failure.message)")
    }

    // MARK: Coverage

    /// Runs in one transaction on an empty cache with these indexes.
    private func with(_ indexes: [FieldIndex], _ body: (any IndexManager) throws(Status) -> Void) throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        let manager = cache.indexManager(for: .unauthenticated)
        try cache.transaction("test") { () throws(Status) in
            for index in indexes { try manager.add(index) }
            try body(manager)
        }
        cache.shutDown()
    }

    @Test("Which indexes serve which targets")
    func coverage() throws {
        let ab = FieldIndex("c", ("a", .ascending), ("b", .ascending))
        let a = FieldIndex("c", ("a", .ascending))
        let bDown = FieldIndex("c", ("b", .descending))
        let tags = FieldIndex("c", ("t", .contains), ("a", .ascending))
        let one = Value.integer(1)
        let equalA = filter("a", .equal, one)
        let cases: [([FieldIndex], ClientQuery, IndexCoverage)] = [
            ([], .collection("c", [equalA]), .none),
            ([a], .collection("c", [equalA]), .full),
            ([a], .collection("d", [equalA]), .none),
            ([a], .collection("x/1/c", [equalA]), .full),
            ([a], ClientQuery(path: ResourcePath(), collectionGroup: "c", filters: [equalA]), .full),
            ([a], .collection("c", [filter("b", .equal, one)]), .none),
            ([a], .collection("c", [equalA, filter("b", .equal, one)]), .partial),
            ([a, ab], .collection("c", [equalA, filter("b", .equal, one)]), .full),
            ([ab], .collection("c", [equalA]), .none),
            ([ab], .collection("c", [equalA, filter("b", .greaterThan, one)]), .full),
            ([ab], .collection("c", [filter("a", .greaterThan, one), filter("b", .equal, one)]), .none),
            ([ab], .collection("c", [equalA], orders: [("b", false)]), .full),
            ([ab], .collection("c", [equalA], orders: [("b", true)]), .none),
            ([ab], .collection("c", orders: [("a", false), ("b", false)]), .full),
            ([ab], .collection("c", orders: [("a", false)]), .none),
            ([a], .collection("c", orders: [("a", false), ("b", false)]), .partial),
            ([bDown], .collection("c", [filter("b", .lessThan, one)]), .none),
            ([bDown], .collection("c", [filter("b", .lessThan, one)], orders: [("b", true)]), .full),
            ([bDown], .collection("c", orders: [("b", true)], limit: 3), .full),
            ([a], .collection("c", [equalA], limit: 3), .full),
            ([FieldIndex("c", ("a", .descending))], .collection("c", [equalA]), .full),
            // Equal entries have descending keys.
            ([FieldIndex("c", ("a", .descending))], .collection("c", [equalA], limit: 3), .partial),
            ([tags], .collection("c", [equalA]), .none),
            ([tags], .collection("c", [equalA, filter("t", .arrayContains, one)]), .full),
            ([tags], .collection("c", [equalA, filter("t", .arrayContainsAny, .array([one]))]), .full),
            ([a], .collection("c", [filter("a", .in, .array([one, .string("x")]))]), .full),
            ([a], .collection("c", [filter("a", .in, .array([one, .string("x")]))], limit: 2), .partial),
            ([a, bDown], .collection("c", [.or([equalA, filter("b", .equal, one)])]), .full),
            ([a], .collection("c", [.or([equalA, filter("b", .equal, one)])]), .none),
            ([a], .collection("c", [filter("a", .greaterThan, one), filter("b", .greaterThan, one)]), .none),
        ]
        for (number, (indexes, query, expected)) in cases.enumerated() {
            try with(indexes) { manager throws(Status) in
                #expect(try manager.coverage(of: query.target) == expected, "case \(number)")
            }
        }
    }

    @Test("Automatic creation makes a full index")
    func creation() throws {
        let query = ClientQuery.collection(
            "x/1/c",
            [
                filter("e", .equal, .integer(1)), filter("t", .arrayContains, .integer(1)),
                filter("n", .greaterThan, .integer(1)),
            ], orders: [("n", true), ("m", false)])
        try with([]) { manager throws(Status) in
            try manager.createIndexes(for: query.target)
            let made = try manager.indexes
            #expect(made.map(\.collectionGroup) == ["c"])
            #expect(
                made.first?.segments
                    == FieldIndex(
                        "c", ("t", .contains), ("e", .ascending), ("n", .descending), ("m", .ascending)
                    ).segments)
            #expect(try manager.coverage(of: query.target) == .full)
            try manager.createIndexes(for: query.target)
            #expect(try manager.indexes.count == 1)
            let either = ClientQuery.collection(
                "c", [.or([filter("a", .equal, .null), filter("b", .lessThan, .null)])])
            try manager.createIndexes(for: either.target)
            #expect(try manager.coverage(of: either.target) == .full)
            let count = try manager.indexes.count
            let several = ClientQuery.collection("c", [filter("p", .lessThan, .null), filter("q", .lessThan, .null)])
            try manager.createIndexes(for: several.target)
            try manager.createIndexes(for: ClientQuery.collection("c").target)
            #expect(try manager.indexes.count == count)
            try manager.deleteAll()
            #expect(try manager.indexes.isEmpty)
            #expect(try manager.documents(matching: query.target) == nil)
        }
    }

    // MARK: States

    @Test("Groups are filled round-robin; states and entries are per user, definitions are shared")
    func states() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        let (one, two) = (cache.indexManager(for: ClientUser(uid: "1")), cache.indexManager(for: ClientUser(uid: "2")))
        try cache.transaction("states") { () throws(Status) in
            #expect(try one.nextGroupToUpdate() == nil)
            try one.add(FieldIndex("b", ("x", .ascending)))
            try one.add(FieldIndex("a", ("x", .ascending)))
            try one.add(FieldIndex("a", ("y", .ascending)))
            #expect(try one.nextGroupToUpdate() == "a")
            let offset = IndexOffset(readTime: .seconds(5), key: ResourcePath("a/7"), largestBatchID: 3)
            try one.updateGroup("a", offset: offset)
            #expect(try one.nextGroupToUpdate() == "b")
            #expect(try one.lowestOffset(ofGroup: "a") == offset)
            try one.updateGroup("b", offset: offset)
            #expect(try one.nextGroupToUpdate() == "a")
            #expect(try two.nextGroupToUpdate() == "a")
            #expect(try two.lowestOffset(ofGroup: "a") == .none)
            // A new index starts at the beginning, and its group with it.
            try one.add(FieldIndex("a", ("z", .ascending)))
            #expect(try one.lowestOffset(ofGroup: "a") == .none)
            let query = ClientQuery.collection("a", [filter("x", .equal, .integer(1))]).target
            #expect(try one.lowestOffset(for: query) == offset)

            let document = ClientDocument.found("a/1", 1, ["x": .integer(1)])
            try one.updateEntries([document.key: document])
            #expect(try one.documents(matching: query) == [document.key])
            #expect(try two.documents(matching: query) == [])
            try one.updateEntries([document.key: .found("a/1", 2, ["x": .integer(2)])])
            #expect(try one.documents(matching: query) == [])
            try one.updateEntries([document.key: document])
            try one.updateEntries([document.key: ClientDocument(key: document.key, kind: .missing)])
            #expect(try one.documents(matching: query) == [])
            guard let index = try one.indexes.first(where: { $0.collectionGroup == "a" }) else { return }
            try one.updateEntries([document.key: document])
            try one.delete(index)
            #expect(try one.documents(matching: query) == nil)
            #expect(try cache.database.number("SELECT count(*) FROM index_entries") == 0)
        }
        cache.shutDown()
    }

    @Test("Collected documents have no index entries")
    func collected() throws {
        let folder = TemporaryFolder()
        let cache = try folder.open(sizeBytes: 0)
        let manager = cache.indexManager(for: .unauthenticated)
        try cache.transaction("add") { () throws(Status) in
            try manager.add(FieldIndex("a", ("x", .ascending)))
            let document = ClientDocument.found("a/1", 1, ["x": .integer(1)])
            try cache.remoteDocuments.add(document, readTime: .seconds(1))
            try manager.updateEntries([document.key: document])
        }
        try cache.transaction("collect") { () throws(Status) in
            cache.collector?.parameters.percentile = 100
            #expect(try cache.collector?.collect(active: []).documentsRemoved == 1)
            let query = ClientQuery.collection("a", [filter("x", .equal, .integer(1))])
            #expect(try manager.documents(matching: query.target) == [])
        }
    }
}
