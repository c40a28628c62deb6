import HearthTestSupport
import HearthTree
import Testing

@Suite struct TreeKeyTests {
    @Test func keysAreInTheDatabasesOrder() {
        let keys: [TreeKey] = [
            "-2147483648", "-1", "-01", "0", "-0", "00", "1", "01", "9", "10", "2147483647", "", "-", "-2147483649",
            "2147483648", "a", "a\u{308}", "b", "\u{e4}", "\u{1F600}", "\u{E000}", "\u{FFFD}",
        ]
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let sorted = keys.shuffled(using: &chance).sorted()
            #expect(zip(sorted, keys).allSatisfy { $0 == $1 }, "seed \(seed): \(sorted)")
        }
        for (left, right) in zip(keys, keys.dropFirst()) { #expect(left < right, "\(left) \(right)") }
        #expect(TreeKey("\u{e4}") != TreeKey("a\u{308}"))
        #expect(Set([TreeKey("\u{e4}"), TreeKey("a\u{308}"), TreeKey("\u{e4}")]).count == 2)
    }

    @Test func theOrderIsTotal() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        func string() -> TreeKey {
            let parts = ["-", "0", "1", "9", "2147483647", "a", "\u{e4}", "\u{1F600}", "\u{E000}", " ", ""]
            return TreeKey((0...chance.below(4)).map { _ in parts.randomElement(using: &chance)! }.joined())
        }
        for _ in 0..<10_000 {
            let (a, b, c) = (string(), string(), string())
            #expect((a == b) == (TreeKey.compare(a, b) == 0), "seed \(seed): \(a) \(b)")
            #expect(TreeKey.compare(a, b).signum() == -TreeKey.compare(b, a).signum(), "seed \(seed): \(a) \(b)")
            if a < b, b < c { #expect(a < c, "seed \(seed): \(a) \(b) \(c)") }
        }
    }

    @Test func arrayIndexesAreCanonical() {
        let cases: [(TreeKey, Int?)] = [
            ("0", 0), ("7", 7), ("10", 10), ("2147483647", 2_147_483_647), ("2147483648", nil), ("00", nil),
            ("01", nil),
            ("-1", nil), ("-0", nil), ("", nil), ("a", nil), ("1a", nil), ("99999999999999999999", nil),
        ]
        for (key, index) in cases { #expect(key.arrayIndex == index, "\(key)") }
    }

    /// Source: the public SDKs for Apple.
    @Test func neighboursAreThoseOfTheSDKsForApple() {
        let longest = String(repeating: "k", count: 767)
        let successors: [(TreeKey, TreeQuery.BoundKey)] = [
            ("5", .key("6")), ("-1", .key("0")), ("05", .key("6")), ("2147483647", .key(" ")), ("a", .key("a ")),
            ("", .key(" ")), (TreeKey(longest), .key(TreeKey(longest + " "))),
            (TreeKey(longest + "k"), .key(TreeKey(longest + "l"))),
            (TreeKey(longest + "\u{FFFF}"), .key(TreeKey(String(longest.dropLast()) + "l"))),
            (TreeKey(longest + "\u{D7FF}"), .key(TreeKey(longest + "\u{10000}"))),
            (
                TreeKey(String(longest.dropLast()) + "\u{10FFFF}"),
                .key(TreeKey(String(longest.dropLast()) + "\u{E000}"))
            ),
            (TreeKey(String(repeating: "\u{FFFF}", count: 768)), .max),
        ]
        for (key, neighbour) in successors { #expect(key.successor == neighbour, "\(key)") }
        func padded(_ string: String) -> TreeQuery.BoundKey {
            .key(TreeKey(string + String(repeating: "\u{FFFF}", count: 768 - string.utf16.count)))
        }
        let predecessors: [(TreeKey, TreeQuery.BoundKey)] = [
            ("5", .key("4")), ("0", .key("-1")), ("-2147483648", .min), (" ", .key("2147483647")), ("a ", .key("a")),
            ("b", padded("a")), ("ab", padded("aa")), ("\u{E000}", padded("\u{10FFFF}")),
            ("\u{10000}", padded("\u{D7FF}")),
            ("", .min),
        ]
        for (key, neighbour) in predecessors { #expect(key.predecessor == neighbour, "\(key)") }
    }

    @Test func neighboursAreAdjacent() {
        let keys: [TreeKey] = ["-5", "0", "7", "a", "b", "a ", "\u{e4}", "\u{1F600}", "\u{E000}", "\u{FFFD}", "!"]
        for key in keys {
            if case .key(let next) = key.successor { #expect(key < next) } else { Issue.record("\(key)") }
            if case .key(let previous) = key.predecessor { #expect(previous < key) } else { Issue.record("\(key)") }
        }
    }
}

@Suite struct TreeLimitsTests {
    @Test func pathsAreChecked() throws {
        let limits = TreeLimits.standard
        #expect(try limits.path("//a///b/") == "a/b")
        #expect(try limits.path("/") == .root)
        #expect(try limits.path("a/.priority", allowingPriority: true).last == .priority)
        for string in [
            "a/.priority", "a.b", "$x", "a/#", "[", "a]", ".info/connected", "a/\u{1}", "\u{7f}", "a/.value",
        ] {
            #expect(throws: TreeDataError.invalidPath) { try limits.path(string) }
        }
        #expect(throws: TreeDataError.invalidPath) { try limits.path(".priority/a", allowingPriority: true) }
        #expect(TreeDataError.invalidPath.message == "Invalid path: Invalid token in path")

        let deepest = Array(repeating: "k", count: 32).joined(separator: "/")
        _ = try limits.path(deepest)
        _ = try limits.path(deepest + "/.priority", allowingPriority: true)
        #expect(throws: TreeDataError.self) { try limits.path(deepest + "/k") }
        let key = String(repeating: "x", count: 768)
        _ = try limits.path(key + "/" + key)
        _ = try TreeLimits.client.path(key)
        #expect(throws: TreeDataError.self) { try limits.path(key + "x") }
        let slashes = String(repeating: "/", count: 100_000)
        #expect(throws: TreeDataError.self) { try limits.path(slashes) }
        #expect(throws: TreeDataError.self) { try TreeJSON.merge(Array("{\"a\(slashes)\":1}".utf8), at: .root) }
        #expect(throws: TreeDataError.self) { try TreeLimits.client.path(String(key.dropLast()) + "/x") }
    }
}

@Suite struct PushIDTests {
    /// Source: the public SDKs.
    @Test func theTimeIsTheFirstPart() {
        var generator = PushID.Generator()
        #expect(generator.next(nowMilliseconds: 1).string.hasPrefix("-------0"))
        #expect(generator.next(nowMilliseconds: 1_700_000_000_000).string.hasPrefix("-NjEtLV-"))
    }

    private struct Last: RandomNumberGenerator {
        mutating func next() -> UInt64 { .max }
    }

    @Test func idsAscendWhateverTheClockDoes() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        var generator = PushID.Generator()
        var last = generator.next(nowMilliseconds: 1_700_000_000_000, using: &chance)
        for _ in 0..<10_000 {
            let next = generator.next(nowMilliseconds: 1_700_000_000_000 + Int64(chance.below(50)) - 25, using: &chance)
            #expect(
                last < next && next.string.utf8.count == 20 && TreeLimits.standard.isValid(next),
                "seed \(seed): \(next)")
            last = next
        }
    }

    @Test func anIdWithoutNextOneBeginsTheNextMillisecond() {
        var source = Last()
        var generator = PushID.Generator()
        #expect(generator.next(nowMilliseconds: 1, using: &source) == "-------0zzzzzzzzzzzz")
        #expect(generator.next(nowMilliseconds: 1, using: &source) == "-------1------------")
        #expect(generator.next(nowMilliseconds: 2, using: &source) == "-------1-----------0")
        #expect(generator.next(nowMilliseconds: 3, using: &source) == "-------2zzzzzzzzzzzz")
    }
}
