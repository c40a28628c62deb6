import HearthModel
import Testing

@Suite struct FieldPathTests {
    static let valid: [(string: String, segments: [String])] = [
        ("a", ["a"]),
        ("_", ["_"]),
        ("a1_B", ["a1_B"]),
        ("a.b.c", ["a", "b", "c"]),
        ("`a.b`", ["a.b"]),
        ("a.`0`", ["a", "0"]),
        ("`a b`.c", ["a b", "c"]),
        (#"`a\`b`"#, ["a`b"]),
        (#"`a\\b`"#, [#"a\b"#]),
        ("`é`.`日本`", ["é", "日本"]),
        (#"`\é`"#, ["é"]),
        ("__name__", ["__name__"]),
        ("____", ["____"]),
        ("__x_", ["__x_"]),
        ("_x__", ["_x__"]),
        ("`a\u{0}b`", ["a\u{0}b"]),
    ]

    @Test(arguments: valid) func parses(_ string: String, _ segments: [String]) throws {
        let path = try FieldPath(parsing: string)
        #expect(path == FieldPath(segments: segments))
        #expect(try FieldPath(parsing: path.string) == path)
    }

    static let malformed = [
        ".", "a.", ".a", "a..b", "a b", "0a", "a-b", "é", "`a", "``", "`a`b", "a`b`", "a.`", #"`a\"#, #"`a\`"#, "a.``",
        "*",
    ]

    @Test(arguments: malformed) func refusesWhatIsMalformed(_ string: String) {
        expectInvalid(
            "Invalid property path \"\(string)\". Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), and "
                + #"quoted property paths must match regex (`(?:[^`\\]|(?:\\.))+`)"#
        ) { () throws(Status) in _ = try FieldPath(parsing: string) }
    }

    @Test func refusesTheEmptyString() {
        expectInvalid("Invalid empty property path string.") { () throws(Status) in _ = try FieldPath(parsing: "") }
    }

    @Test(arguments: ["__x__", "a.__x__", "__name__.a", "a.__name__", "_____", "`__é__`", "`__\u{301}__`"])
    func refusesReservedNames(_ string: String) throws {
        let name = try #require(string.split(separator: ".").first { $0.contains("__") }).filter { $0 != "`" }
        expectInvalid("Invalid reserved name in field path \(name)") { () throws(Status) in
            _ = try FieldPath(parsing: string)
        }
    }

    @Test func boundsTheLength() throws {
        _ = try FieldPath(parsing: String(repeating: "a", count: 1500))
        _ = try FieldPath(parsing: "`" + String(repeating: "é", count: 749) + "`")
        expectInvalid("The property path is longer than 1500 bytes.") { () throws(Status) in
            _ = try FieldPath(parsing: String(repeating: "a", count: 1501))
        }
    }

    @Test func identityAndOrderUseBytes() {
        let composed = FieldPath("\u{E9}")
        let decomposed = FieldPath("e\u{301}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(decomposed < composed)
        // Segments are compared, not strings: "a.b" sorts before "a-", because "a" sorts before "a-".
        #expect(FieldPath(segments: ["a", "b"]) < FieldPath("a-"))
        #expect(FieldPath("a") < FieldPath(segments: ["a", "b"]))
    }

    @Test func prefixesConsistOfWholeSegments() {
        let path = FieldPath(segments: ["a", "b"])
        #expect(FieldPath("a").isPrefix(of: path))
        #expect(path.isPrefix(of: path))
        #expect(!FieldPath("ab").isPrefix(of: path))
        #expect(!path.isPrefix(of: FieldPath("a")))
    }
}
