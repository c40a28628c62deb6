import HearthModel
import Testing

@Suite struct ResourceNameTests {
    static let root = "projects/p/databases/(default)/documents"

    static let documents: [(suffix: String, segments: [String])] = [
        ("/c/d", ["c", "d"]),
        ("/c/d/e/f", ["c", "d", "e", "f"]),
        ("/c/__id7__", ["c", "__id7__"]),
        ("/c/__id-9223372036854775808__", ["c", "__id-9223372036854775808__"]),
        ("/c/..a", ["c", "..a"]),
        ("/c/a b\n\u{0}😀", ["c", "a b\n\u{0}😀"]),
        ("/c/____", ["c", "____"]),
        ("/__/__x_", ["__", "__x_"]),
        ("/c/a:b", ["c", "a:b"]),
    ]

    @Test(arguments: documents) func parsesDocuments(_ suffix: String, _ segments: [String]) throws {
        let name = try ResourceName(document: Self.root + suffix)
        #expect(name.path == ResourcePath(segments))
        #expect(name.string == Self.root + suffix)
        #expect(name.database == DatabaseName(project: "p"))
    }

    static let refused: [(string: String, message: String)] = [
        ("foo", "Document name \"foo\" lacks \"projects\" at index 0."),
        ("projects/p", "Document name \"projects/p\" lacks \"databases\" at index 10."),
        (
            "projects//databases/d/documents/c/x",
            "Document name \"projects//databases/d/documents/c/x\" contains an empty resource id at index 9."
        ),
        (root + "/c", "Document name \"\(root)/c\" lacks \"/\" at index 42."),
        (root, "Document name \"\(root)\" lacks \"/\" at index 40."),
        (root + "/c/d/", "Document name \"\(root)/c/d/\" contains an empty resource id at index 2."),
        (root + "/c/.", "Document name \"\(root)/c/.\" contains a resource id \".\" at index 1."),
        (root + "/../d", "Document name \"\(root)/../d\" contains a resource id \"..\" at index 0."),
        (root + "/c/__x__", "Resource id \"__x__\" is invalid because it is reserved."),
        (root + "/c/__id007__", "Resource id \"__id007__\" is invalid because it is reserved."),
        (
            root + "/c/__id9223372036854775808__",
            "Resource id \"__id9223372036854775808__\" is invalid because it is reserved."
        ),
        (root + "/__x__/d", "Collection id \"__x__\" is invalid because it is reserved."),
        (root + "/__id7__/d", "Collection id \"__id7__\" is invalid because it is reserved."),
        (root + "/c/" + String(repeating: "x", count: 1501), "The key path element name is longer than 1500 bytes."),
        (
            root + "/" + String(repeating: "é", count: 751) + "/d",
            "The key path element kind is longer than 1500 bytes."
        ),
        (
            root + String(repeating: "/c/d", count: 101), "Key path is too long. Cannot exceed 100 elements."
        ),
        (
            root + String(repeating: "/c/" + String(repeating: "d", count: 1500), count: 5),
            "The document name is longer than 6144 bytes."
        ),
    ]

    @Test(arguments: refused) func refuses(_ string: String, _ message: String) {
        expectInvalid(message) { () throws(Status) in _ = try ResourceName(document: string) }
    }

    @Test func acceptsTheLargestNames() throws {
        _ = try ResourceName(document: Self.root + String(repeating: "/c/d", count: 100))
        _ = try ResourceName(document: Self.root + "/c/" + String(repeating: "x", count: 1500))
    }

    @Test func parentsAreTheRootOrDocuments() throws {
        #expect(try ResourceName(parent: Self.root).path.isRoot)
        #expect(try ResourceName(parent: Self.root + "/c/d").path.isDocument)
        expectInvalid("Document parent name \"\(Self.root)/c\" lacks \"/\" at index 42.") { () throws(Status) in
            _ = try ResourceName(parent: Self.root + "/c")
        }
    }

    @Test func identityGoesByBytes() throws {
        let composed = try ResourceName(document: Self.root + "/c/\u{E9}")
        let decomposed = try ResourceName(document: Self.root + "/c/e\u{301}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(DatabaseName(project: "\u{E9}") != DatabaseName(project: "e\u{301}"))
    }

    @Test func checksIdsGivenAsArguments() {
        expectInvalid("Collection id \"a/b\" is invalid because it contains \"/\".") { () throws(Status) in
            try ResourceName.validate(collectionID: "a/b")
        }
        expectInvalid("Document id \"a/b\" is invalid because it contains \"/\".") { () throws(Status) in
            try ResourceName.validate(documentID: "a/b")
        }
        expectInvalid("Collection id \"__x__\" is invalid because it is reserved.") { () throws(Status) in
            try ResourceName.validate(collectionID: "__x__")
        }
    }

    static let numericIDs: [(segment: String, number: Int64?)] = [
        ("__id0__", 0), ("__id-1__", -1), ("__id9223372036854775807__", .max), ("__id-9223372036854775808__", .min),
        ("__id00__", nil), ("__id-0__", nil), ("__id+1__", nil), ("__id__", nil), ("__id1_", nil), ("id1", nil),
        ("__id１__", nil), ("__id9223372036854775808__", nil), ("__id 1__", nil),
    ]

    @Test(arguments: numericIDs) func readsNumericIDs(_ segment: String, _ number: Int64?) {
        #expect(ResourcePath.numericID(segment) == number)
    }

    @Test func parsesDatabases() throws {
        #expect(try DatabaseName(parsing: "projects/p/databases/d") == DatabaseName(project: "p", database: "d"))
        for string in [
            "projects/p", "projects//databases/d", "projects/p/databases/", "p/p/databases/d",
            "projects/p/databases/d/x",
        ] {
            expectInvalid("Invalid database name \"\(string)\": expected projects/{project}/databases/{database}.") {
                () throws(Status) in _ = try DatabaseName(parsing: string)
            }
        }
    }
}
