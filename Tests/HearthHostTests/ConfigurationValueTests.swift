import HearthModel
import Testing

@testable import HearthHost

@Suite struct ConfigurationValueTests {
    private func message(_ string: String, _ body: (ConfigurationValue) throws(Status) -> Void = { _ in }) -> String? {
        do throws(Status) {
            try body(try ConfigurationValue(parsing: Array(string.utf8), file: "f.json"))
            return nil
        } catch {
            return error.message
        }
    }

    @Test func commentsAreWhiteSpace() throws {
        let string = """
            // first
            { /* one
                 two */ "a": "// not a comment", "b": 1 // last
            }
            """
        let value = try ConfigurationValue(parsing: Array(string.utf8), file: "f.json")
        #expect(try value.member("a")?.string() == "// not a comment")
        #expect(try value.member("b")?.integer(0...9) == 1)
    }

    @Test func invalidJSONReportsLineAndColumn() {
        let cases: [(string: String, location: String)] = [
            ("{\"a\" 1}", "f.json:1:6"),
            ("{\n  \"a\": 1,\n  \"b\": }", "f.json:3:8"),
            ("{\"ü\": x}", "f.json:1:7"),
            ("", "f.json:1:1"),
            ("{\"a\": 1", "f.json:1:8"),
            ("{} {}", "f.json:1:4"),
            ("/* never closed", "f.json:1:1"),
        ]
        for (string, location) in cases {
            let message = message(string)
            #expect(message?.hasPrefix(location + ": ") == true, "\(string): \(message ?? "no error")")
        }
    }

    @Test func errorsNameTheMember() {
        let string = "{\n \"a\": [ {\"b\": \"x\"} ] }"
        let failure = message(string) { value throws(Status) in
            _ = try value.member("a")?.elements()[0].member("b")?.integer(1...2)
        }
        #expect(failure == "f.json:2:15: a[0].b: Expected a number, found a string.")
    }

    @Test func nullIsAbsent() throws {
        let value = try ConfigurationValue(parsing: Array("{\"a\": null}".utf8), file: "f")
        let member = try value.member("a")
        #expect(member == nil)
    }

    @Test func spellingSuggestsTheNearestName() {
        let known = ["port", "host", "data", "tlsCert"]
        let cases: [(String, String?)] = [
            ("prot", "port"), ("hosts", "host"), ("tlscert", "tlsCert"), ("zzz", nil), ("", nil),
            (String(repeating: "x", count: 100), nil),
        ]
        for (name, expected) in cases { #expect(Spelling.nearest(to: name, among: known) == expected, "\(name)") }
    }
}
