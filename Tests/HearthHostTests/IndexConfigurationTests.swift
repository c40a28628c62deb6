import HearthModel
import HearthDocuments
import HearthEngine
import Testing

@testable import HearthHost

@Suite struct IndexConfigurationTests {
    private func parse(_ string: String) throws(Status) -> IndexConfiguration {
        try IndexConfiguration(parsing: Array(string.utf8), file: "firestore.indexes.json")
    }

    private func field(_ path: String, _ kind: IndexField.Kind) throws -> IndexField {
        IndexField(path: try FieldPath(parsing: path), kind: kind)
    }

    @Test func bothSpellingsMeanTheSame() throws {
        let modern = try parse(
            """
            {"indexes": [{"collectionGroup": "posts", "queryScope": "COLLECTION", "fields": [
                {"fieldPath": "tags", "arrayConfig": "CONTAINS"}, {"fieldPath": "at", "order": "DESCENDING"}]}]}
            """)
        let old = try parse(
            """
            {"indexes": [{"collectionId": "posts", "fields": [
                {"fieldPath": "tags", "mode": "ARRAY_CONTAINS"}, {"fieldPath": "at", "mode": "DESCENDING"}]}]}
            """)
        #expect(modern == old)
        #expect(
            modern.indexes == [
                IndexDefinition(
                    id: 0, collectionID: "posts", scope: .collection,
                    fields: [try field("tags", .contains), try field("at", .descending)], nameDescending: true)
            ])
    }

    @Test func nameEndsAnIndexInTheDirectionOfItsLastField() throws {
        let cases: [(fields: String, descending: Bool)] = [
            (#"{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"b","order":"ASCENDING"}"#, false),
            (#"{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"b","order":"DESCENDING"}"#, true),
            (
                #"{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"b","order":"DESCENDING"},"#
                    + #"{"fieldPath":"__name__","order":"ASCENDING"}"#, false
            ),
            (#"{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"__name__","order":"DESCENDING"}"#, true),
            (#"{"fieldPath":"b","order":"DESCENDING"},{"fieldPath":"a","arrayConfig":"CONTAINS"}"#, false),
            (
                #"{"fieldPath":"a","order":"DESCENDING"},{"fieldPath":"__name__","order":"DESCENDING"},"#
                    + #"{"fieldPath":"v","vectorConfig":{"dimension":3,"flat":{}}}"#, true
            ),
        ]
        for (fields, descending) in cases {
            let found = try parse(#"{"indexes":[{"collectionGroup":"c","fields":[\#(fields)]}]}"#).indexes
            #expect(found.map(\.nameDescending) == [descending], "\(fields)")
            #expect(found.allSatisfy { !$0.fields.contains { $0.path.isDocumentName } })
        }
    }

    /// A file, the location that its error names, and words of the error.
    private typealias WrongFile = (string: String, path: String, words: String)

    private static let two = #"{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"b","order":"ASCENDING"}"#

    private static func index(_ fields: String) -> String {
        #"{"indexes":[{"collectionGroup":"c","fields":[\#(fields)]}]}"#
    }

    /// Not the shape of the file.
    private static let wrongShapes: [WrongFile] = [
        (#"{"indexes": 1}"#, "indexes:", "a list"),
        (#"[]"#, "", "an object"),
        (#"{"indexes":[{"fields":[\#(two)]}]}"#, "indexes[0]:", "collectionGroup"),
        (#"{"indexes":[{"collectionGroup":"a/b","fields":[\#(two)]}]}"#, "indexes[0].collectionGroup:", "a/b"),
        (#"{"indexes":[{"collectionGroup":"c"}]}"#, "indexes[0]:", "fields"),
        (
            #"{"indexes":[{"collectionGroup":"c","queryScope":"X","fields":[\#(two)]}]}"#, "indexes[0].queryScope:",
            "COLLECTION_GROUP"
        ),
    ]

    /// Wrong fields of an index.
    private static let wrongFields: [WrongFile] = [
        (index(#"{"fieldPath":"a","order":"UP"}"#), "indexes[0].fields[0].order:", "ASCENDING or DESCENDING"),
        (index(#"{"fieldPath":"a..b","order":"ASCENDING"}"#), "indexes[0].fields[0].fieldPath:", "a..b"),
        (index(#"{"fieldPath":"a"}"#), "indexes[0].fields[0]:", "exactly one"),
        (index(#"{"order":"ASCENDING"}"#), "indexes[0].fields[0]:", "fieldPath"),
        (
            index(#"{"fieldPath":"a","order":"ASCENDING","arrayConfig":"CONTAINS"}"#), "indexes[0].fields[0]:",
            "exactly one"
        ),
        (index(#"{"fieldPath":"a","order":"ASCENDING"}"#), "indexes[0]:", "not necessary"),
        (index(#"{"fieldPath":"a","arrayConfig":"CONTAINS"}"#), "indexes[0]:", "not necessary"),
        (
            index(#"{"fieldPath":"a","arrayConfig":"CONTAINS"},{"fieldPath":"b","arrayConfig":"CONTAINS"}"#),
            "indexes[0]:", "at most one"
        ),
        (
            index(#"{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"a","order":"DESCENDING"}"#), "indexes[0]:",
            "more than once"
        ),
        (
            index(#"{"fieldPath":"__name__","order":"ASCENDING"},"# + two), "indexes[0]:",
            "__name__ must be the last"
        ),
        (
            index(#"{"fieldPath":"v","vectorConfig":{"dimension":0}}"#),
            "indexes[0].fields[0].vectorConfig.dimension:", "2048"
        ),
        (index(#"{"fieldPath":"v","vectorConfig":{"dimension":3}},"# + two), "indexes[0]:", "vector"),
        (index(#"{"fieldPath":"__name__","order":"ASCENDING"}"#), "indexes[0]:", "not necessary"),
    ]

    /// Wrong overrides.
    private static let wrongOverrides: [WrongFile] = [
        (#"{"fieldOverrides":[{"collectionGroup":"c"}]}"#, "fieldOverrides[0]:", "fieldPath"),
        (
            #"{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"*","ttl":true}]}"#,
            "fieldOverrides[0].fieldPath:", "time-to-live"
        ),
        (
            #"{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"a","indexes":[{"order":1}]}]}"#,
            "fieldOverrides[0].indexes[0].order:", "a string"
        ),
    ]

    @Test func errorsNameTheirLocation() {
        for (string, path, words) in Self.wrongShapes + Self.wrongFields + Self.wrongOverrides {
            let failure = #expect(throws: Status.self, "\(string)") { try parse(string) }
            guard let message = failure?.message else { continue }
            #expect(message.hasPrefix("firestore.indexes.json:1:"), "\(message)")
            #expect(message.contains(": \(path) ") || path.isEmpty, "\(message)")
            #expect(message.contains(words), "\(message)")
        }
    }

    @Test func overrides() throws {
        let found = try parse(
            """
            {"fieldOverrides": [
                {"collectionGroup": "c", "fieldPath": "body", "indexes": []},
                {"collectionGroup": "c", "fieldPath": "*", "indexes": [{"order": "ASCENDING"}]},
                {"collectionGroup": "c", "fieldPath": "a.b", "indexes": [
                    {"queryScope": "COLLECTION_GROUP", "arrayConfig": "CONTAINS"}, {"order": "DESCENDING"}]},
                {"collectionGroup": "c", "fieldPath": "until", "ttl": true}]}
            """
        ).overrides
        #expect(
            found == [
                FieldOverride(collectionID: "c", path: FieldPath("body"), indexes: []),
                FieldOverride(collectionID: "c", path: nil, indexes: [.init(scope: .collection, kind: .ascending)]),
                FieldOverride(
                    collectionID: "c", path: FieldPath(segments: ["a", "b"]),
                    indexes: [
                        .init(scope: .collectionGroup, kind: .contains), .init(scope: .collection, kind: .descending),
                    ]),
                FieldOverride(
                    collectionID: "c", path: FieldPath("until"), indexes: FieldOverride.automaticIndexes,
                    timeToLive: .init()),
            ])
    }

    /// A file without `ttl` leaves a field's policy, and one that names another field replaces that of the group.
    @Test func policiesOfExpiry() async throws {
        let database = try Database(name: DatabaseName(project: "p"), store: MemoryStore())
        func apply(_ string: String) async throws -> [String: Int64] {
            let file = try parse(string)
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                file.apply(to: database) { continuation.resume(with: $0.mapError { $0 }) }
            }
            let policies = database.catalog.overrides.compactMap { override in
                override.timeToLive.map { (override.path?.string ?? "*", $0.offsetSeconds) }
            }
            return Dictionary(uniqueKeysWithValues: policies)
        }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            database.setCatalog(
                definitions: [],
                overrides: [
                    FieldOverride(
                        collectionID: "c", path: FieldPath("a"), indexes: [], timeToLive: .init(offsetSeconds: 7))
                ]
            ) { continuation.resume(with: $0.mapError { $0 }) }
        }
        func file(_ field: String, _ rest: String) -> String {
            #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "\#(field)", \#(rest)"indexes": []}]}"#
        }
        #expect(try await apply(file("a", "")) == ["a": 7])
        #expect(try await apply(file("b", #""ttl": true, "#)) == ["b": 0])
        #expect(try await apply(file("a", "")) == ["b": 0])
        #expect(try await apply(file("b", #""ttl": false, "#)) == [:])
        database.close()
    }

    @Test func settingsWithoutEffectCauseWarnings() throws {
        let found = try parse(
            """
            {"indexs": [], "indexes": [{"collectionGroup": "c", "density": "DENSE", "unique": true, "apiScope": "ANY_API",
                "colour": 1, "fields": [{"fieldPath":"a","order":"ASCENDING"},{"fieldPath":"b","order":"ASCENDING"}]}]}
            """)
        #expect(found.indexes.count == 1)
        #expect(found.warnings.count == 4)
        #expect(found.warnings.contains { $0.contains("did you mean \"indexes\"?") })
    }

    @Test func theWrittenFileIsReadAgain() throws {
        let string = """
            {
              "indexes": [
                {
                  "collectionGroup": "posts",
                  "queryScope": "COLLECTION_GROUP",
                  "fields": [
                    {
                      "fieldPath": "`a b`",
                      "order": "ASCENDING"
                    },
                    {
                      "fieldPath": "__name__",
                      "order": "ASCENDING"
                    },
                    {
                      "fieldPath": "v",
                      "vectorConfig": {
                        "dimension": 3,
                        "flat": {}
                      }
                    }
                  ]
                }
              ],
              "fieldOverrides": [
                {
                  "collectionGroup": "posts",
                  "fieldPath": "*",
                  "indexes": []
                },
                {
                  "collectionGroup": "posts",
                  "fieldPath": "until",
                  "ttl": true,
                  "indexes": [
                    {
                      "queryScope": "COLLECTION",
                      "order": "DESCENDING"
                    }
                  ]
                }
              ]
            }

            """
        let found = try parse(string)
        #expect(String(decoding: found.json(), as: UTF8.self) == string)
        #expect(try parse(String(decoding: IndexConfiguration().json(), as: UTF8.self)) == IndexConfiguration())
    }
}
