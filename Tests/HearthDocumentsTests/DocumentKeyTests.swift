import HearthModel
import HearthTestSupport
import Testing

@testable import HearthEngine
@testable import HearthDocuments

@Suite struct DocumentKeyTests {
    static let ids = [
        "a", "b", "ab", "a-", "a\u{0}", "a\u{0}b", "a\u{1}", "\u{0}", "é", "e\u{301}", "日本", "😀", "__id7__", "__id-7__",
        "__id10__",
        "__id-9223372036854775808__", "__id9223372036854775807__", "__id07__", "____", "0", "~",
        String(repeating: "x", count: 1500),
    ]

    private func randomPath(_ random: inout SeededGenerator) -> ResourcePath {
        ResourcePath(
            (0..<(2 * (1 + random.below(3)))).map { _ in random.pick(random.chance(70) ? Self.ids[..<6] : Self.ids[...])
            })
    }

    @Test func roundTrips() {
        var random = SeededGenerator(seed: TestRun.seed())
        for _ in 0..<(5000 * TestRun.effort) {
            let path = randomPath(&random)
            let key = DocumentKey.encode(path)
            let pathKey = DocumentKey.encodePath(path)
            #expect(DocumentKey.decode(key) == path)
            #expect(DocumentKey.toPathKey(key) == pathKey)
            #expect(DocumentKey.fromPathKey(pathKey) == key)
            let end = DocumentKey.collectionPrefixEnd(key)
            #expect(end.map { Array(key[..<$0]) } == DocumentKey.collectionPrefix(path.parent))
        }
    }

    @Test func appendsTheIDsOfOneCollectionOnly() {
        let prefix = DocumentKey.collectionPrefix(ResourcePath(["c"]))
        for id in Self.ids {
            for (path, expected) in [(["c", id], "n/" + id), (["d", id], "n/"), (["c", "a", "c", id], "n/")] {
                var name = Array("n/".utf8)
                let isInside = DocumentKey.appendID(
                    of: DocumentKey.encode(ResourcePath(path)), inCollection: prefix, to: &name)
                #expect(isInside == (path.count == 2 && path[0] == "c"))
                #expect(name == Array(expected.utf8))
            }
        }
    }

    @Test func pathKeysHaveTheOrderOfNames() {
        var random = SeededGenerator(seed: TestRun.seed())
        for _ in 0..<(20_000 * TestRun.effort) {
            let left = randomPath(&random)
            let right = random.chance(20) ? ResourcePath(left.segments + ["a", "b"]) : randomPath(&random)
            let expected = ValueOrder.compareNames(left.string, right.string).signum()
            let order = UTF8Order.compare(DocumentKey.encodePath(left), DocumentKey.encodePath(right)).signum()
            #expect(order == expected, "seed \(random.seed): \(left) and \(right)")
        }
    }

    static let ascending = [
        "c/__id-9223372036854775808__", "c/__id-7__", "c/__id7__", "c/__id10__", "c/\u{0}", "c/0", "c/____",
        "c/__id07__", "c/a",
        "c/a/x/1", "c/a\u{0}", "c/a\u{0}/x/1", "c/a\u{1}", "c/a-", "c/ab", "c/b", "c/e\u{301}", "c/\u{E9}", "c-/a",
        "d/a",
    ]

    @Test func numericIDsAndPrefixesSortLikeNames() {
        for (index, left) in Self.ascending.enumerated() {
            for right in Self.ascending[(index + 1)...] {
                #expect(ValueOrder.compareNames(left, right) < 0, "\(left) and \(right)")
                let keys = [left, right].map { string in
                    DocumentKey.encodePath(ResourcePath(string.split(separator: "/").map(String.init)))
                }
                #expect(UTF8Order.compare(keys[0], keys[1]) < 0, "\(left) and \(right)")
            }
        }
    }

    @Test func collectionsAndSubtreesAreRanges() {
        let paths = [
            "c/a", "c/a/c/x", "c/a/d/x", "c/b", "c/b/c/x", "c/a\u{0}", "d/a", "c-/a", "c/a/c/x/c/y",
        ].map { ResourcePath($0.split(separator: "/").map(String.init)) }
        let collections = ["c", "c/a/c", "c/a/d", "d", "c/a/c/x/c"].map {
            ResourcePath($0.split(separator: "/").map(String.init))
        }
        for collection in collections {
            let direct = KeyRange(prefix: DocumentKey.collectionPrefix(collection))
            let below = KeyRange(prefix: DocumentKey.encodeSegments(collection))
            for path in paths {
                let key = DocumentKey.encode(path)
                #expect(contains(direct, key) == (path.parent == collection), "\(path) in \(collection)")
                let isBelow =
                    path.segments.count > collection.segments.count
                    && Array(path.segments.prefix(collection.segments.count)) == collection.segments
                #expect(contains(below, key) == isBelow, "\(path) below \(collection)")
            }
        }
    }

    private func contains(_ range: KeyRange, _ key: [UInt8]) -> Bool {
        UTF8Order.compare(key, range.lower) >= 0 && (range.upper.map { UTF8Order.compare(key, $0) < 0 } ?? true)
    }

    @Test func prefixSuccessors() {
        #expect(KeyRange.successor(ofPrefix: [1, 2]) == [1, 3])
        #expect(KeyRange.successor(ofPrefix: [1, 0xFF]) == [2])
        #expect(KeyRange.successor(ofPrefix: [0xFF, 0xFF]) == nil)
        #expect(KeyRange.successor(ofPrefix: []) == nil)
        #expect(KeyRange(lower: [1], upper: [1]).isEmpty)
        #expect(!KeyRange(lower: [1], upper: nil).isEmpty)
    }
}
