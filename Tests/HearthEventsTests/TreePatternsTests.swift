import HearthEvents
import HearthTestSupport
import HearthTree
import Testing

struct TreePatternsTests {
    private static let keys = ["a", "b", "ab", "ba", "1", "\u{e9}", "e\u{301}"]
    private static let segments = keys + ["*", "{x}", "a*", "*a", "{x=*b}", "b*a"]

    private func path(_ random: inout SeededGenerator) -> TreePath {
        TreePath(keys: (0..<random.below(5)).map { _ in TreeKey(random.pick(Self.keys)) })
    }

    /// The names of captures differ.
    private func pattern(_ random: inout SeededGenerator) throws -> EventPattern {
        let segments = (0...random.below(4)).map { index in
            var segment = ""
            for character in random.pick(Self.segments) {
                segment.append(character)
                if character == "{" { segment += "k\(index)" }
            }
            return segment
        }
        return try EventPattern(segments.joined(separator: "/"), of: .locations)
    }

    @Test(arguments: [UInt64](1...6)) func positionsAreWhatEachPatternSays(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<40 {
            let all = try (0..<random.below(10)).map { _ in try pattern(&random) }
            var patterns = TreePatterns<Int>()
            for (index, pattern) in all.enumerated() { patterns.insert(index, at: pattern) }
            #expect(patterns.isEmpty == all.isEmpty)
            for _ in 0..<40 {
                let path = path(&random)
                var position = patterns.start
                for key in path.keys { position = patterns.position(after: position, key) }
                let matching = all.indices.filter { !path.isRoot && all[$0].matches(EventPath(path.string)) }
                #expect(patterns.elements(at: position).sorted() == matching, "seed \(seed): \(path)")
                #expect(patterns.hasElements(at: position) == !matching.isEmpty)
                #expect(patterns.concern(path) == concerns(path, all), "seed \(seed): \(path)")
                if let keys = patterns.keys(at: position) {
                    for key in Self.keys where !keys.contains(TreeKey(key)) {
                        #expect(patterns.position(after: position, TreeKey(key)).isEmpty)
                    }
                }
            }
        }
    }

    /// Whether a pattern matches the path, a beginning of it, or any path below it.
    private func concerns(_ path: TreePath, _ all: [EventPattern]) -> Bool {
        all.contains { pattern in
            let count = pattern.string.utf8.split(separator: UInt8(ascii: "/")).count
            let shared = min(count, path.count)
            // The first segments decide.
            let first = pattern.string.split(separator: "/").prefix(shared).joined(separator: "/")
            if shared == 0 { return true }
            do {
                return try EventPattern(first, of: .locations)
                    .matches(EventPath(TreePath(keys: Array(path.keys.prefix(shared))).string))
            } catch {
                return false
            }
        }
    }
}
