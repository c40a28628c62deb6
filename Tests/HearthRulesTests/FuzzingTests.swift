import HearthFuzzing
import HearthTestSupport
import Testing

@testable import HearthRules

/// A short run of the fuzzer's entry point over randomly mutated tables.
@Suite struct FuzzingTests {
    private static let pieces = [
        "(", ")", "[", "]", "{", "}", " in ", " is ", "!", "-", "&&", "||", " ? ", " : ", "/a/$(", "/{d}", "'", "\\",
        ".size()",
        "request", "resource.data", "get(", "9223372036854775807", "1.5", ",", ";", "match /x/{y=**} {", "b'\\xff'",
    ]

    @Test func mutatedExpressionsKeepTheInvariants() throws {
        let seed: UInt64 = 20_240_229
        var generator = SeededGenerator(seed: seed)
        let files = ["operators.txt", "access.txt", "methods.txt", "choices.txt"]
        let seeds = try files.flatMap { try ExpressionCaseTests.cases($0).map { Array($0.expression.utf8) } }
        for _ in 0..<1000 {
            var bytes = seeds[Int.random(in: 0..<seeds.count, using: &generator)]
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                let position = Int.random(in: 0...bytes.count, using: &generator)
                switch Int.random(in: 0...2, using: &generator) {
                case 0:
                    let piece = Self.pieces[Int.random(in: 0..<Self.pieces.count, using: &generator)]
                    bytes.insert(contentsOf: piece.utf8, at: position)
                case 1: bytes.removeSubrange(position..<min(bytes.count, position + 3))
                default:
                    let other = seeds[Int.random(in: 0..<seeds.count, using: &generator)]
                    bytes.insert(contentsOf: other, at: position)
                }
            }
            RulesFuzzing.fuzz(bytes)
        }
    }

    /// The seeds of the fuzzer, and inputs with which it has found errors (Tests/Fuzz).
    @Test(arguments: [
        "source", "version1", "logic", "slices", "paths", "texts", "times", "sets", "numbers", "found-path-member",
    ])
    func seedsKeepTheInvariants(name: String) throws {
        let lines = try CaseFile.lines("../../Fuzz/rules/seeds/" + name)
        RulesFuzzing.fuzz(Array(lines.map(\.string).joined(separator: "\n").utf8))
    }

    /// The same for rules of the Realtime Database.
    @Test(arguments: [
        "document", "nested", "query", "texts", "members", "arithmetic", "snapshots", "pattern", "bare-pattern", "path",
    ])
    func databaseSeedsKeepTheInvariants(name: String) throws {
        let lines = try CaseFile.lines("../../Fuzz/databaserules/seeds/" + name)
        TreeRulesFuzzing.fuzz(Array(lines.map(\.string).joined(separator: "\n").utf8))
    }

    @Test func largeSourcesEnd() {
        let size = RulesLimits.sourceSizeBytesMax - 1
        for piece in [
            "(", "a.", "a&&", "'", "/*", "match /a {", "/a", "1-", "\u{1F600}", "let a=1;", "{'a':[", "allow get;",
        ] {
            RulesFuzzing.fuzz(Array(String(repeating: piece, count: size / piece.utf8.count / 8).utf8))
        }
    }

    @Test func largeDatabaseSourcesEnd() {
        for piece in [
            "(", "a.", "true&&", "'", "/*", "{\"a\":", "a[", "1-", "\u{1F600}", "!", "[", "\\", "(a|b)", "a{1000}",
            "auth.a+",
        ] {
            TreeRulesFuzzing.fuzz(Array(String(repeating: piece, count: 30_000 / piece.utf8.count).utf8))
        }
    }
}
