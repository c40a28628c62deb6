import Glibc
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTree

@Suite struct NodeHashTests {
    /// Source: the public SDKs.
    @Test(arguments: [
        ("true", "E5z61QM0lN/U2WsOnusszCTkR8M="),
        ("500", "Ajg9bohDwTVmqR14o1bVJnneryM="),
        ("500.0", "Ajg9bohDwTVmqR14o1bVJnneryM="),
        ("\"Hello World\"", "B8HWXc7zXMjrsnJxPRj7wrNGqt4="),
        ("10", "+r5aI9HvKKagELki8SYKBk0q7D4="),
        ("false", "aSSNoqcS4oQwJ2xxH20rvpp3zP0="),
        ("0", "7ysMph9WPitGP7poMnMHMVPtUlI="),
        ("-0.0", "7ysMph9WPitGP7poMnMHMVPtUlI="),
        ("-1", "dMw8oUBNk57KCeIcgAKXVS2BfB0="),
        ("3.5", "hAx0dMFavOC9GSpzRWFG31DKCXo="),
        ("1e21", "rZwDOBGJ9Z0+flzyrCWzeSigSyE="),
        ("\"\"", "Ki0Xy0V6morg0TO3Sxi/jwugYDQ="),
        ("\"\u{e4}\u{20ac}\u{1F600}\"", "haaKQhCq49LNkLeFXrgrW65IH/Q="),
        ("{\".value\":7,\".priority\":1}", "5w4kg3AEDXnBv2IWDOak2CHr57w="),
        ("{\".value\":\"x\",\".priority\":\"p\"}", "Ee+tTXV5cvjTnBMuKXMyU8fA5VY="),
        ("{\"a\":1,\"b\":true}", "dMIngtFjgiBRVPggxZ73b00h5cU="),
        ("{\"10\":\"x\",\"9\":\"y\",\"b\":\"z\"}", "nCOglDeKF4o8uXvtymyMZc+Xd5k="),
        (
            "{\"a\":{\".value\":1,\".priority\":2},\"b\":{\".value\":2,\".priority\":1}}",
            "/3lk7Vfl5OYG6Kw2SkiPXNeExPw="
        ),
        ("{\"a\":{\"b\":\"c\"},\".priority\":\"top\"}", "RFOUCHQhWpdwE1+uqZdFrwzqKgg="),
        ("[\"zero\",null,\"two\"]", "7kUZ+KdnE2BQU/9uF489oOT96sg="),
        ("{\"01\":1,\"1\":2}", "WgaD4unZzqVmOtgdbNejSiHgXrM="),
        ("null", ""), ("{}", ""), ("[null]", ""),
    ])
    func aNodesHashIsTheSDKs(_ data: String, _ hash: String) throws {
        #expect(try tree(data).hash == hash)
    }

    /// Received in events, in the order of keys, a node has the same hash; also a long one, which is digested in parts.
    @Test func aNodeReceivedAsEventsHasItsHash() throws {
        func send(_ node: Node, _ key: TreeKey?, to builder: inout NodeHashBuilder) {
            if let value = node.value { return builder.leaf(key, value, priority: node.priority) }
            builder.open(key, priority: node.priority)
            for (key, child) in node.children { send(child, key, to: &builder) }
            builder.close()
        }
        var wide: [(TreeKey, Node)] = []
        for number in 0..<5000 {
            let priority: Scalar? =
                number % 7 == 3 ? .integer(Int64(number * 31 % 11)) : number % 500 == 0 ? .string("p") : nil
            wide.append((TreeKey("key \(number)"), Node(.integer(Int64(number)), priority: priority)))
        }
        let children: [(TreeKey, Node)] = [
            ("a", Node(children: wide)), ("b", Node(children: wide, priority: .integer(4))), ("c", Node(.integer(5))),
            ("d", Node(.string("x"), priority: .string("q"))), ("10", Node(.integer(1))), ("9", Node(.integer(2))),
        ]
        let node = Node(children: children, priority: .double(1.5))
        var builder = NodeHashBuilder()
        #expect(builder.hash == "")
        send(node, nil, to: &builder)
        #expect(builder.hash == node.hash)
        var leaf = NodeHashBuilder()
        send(Node(.string("x"), priority: .string("p")), nil, to: &leaf)
        #expect(leaf.hash == "Ee+tTXV5cvjTnBMuKXMyU8fA5VY=")
    }

    @Test func equalContentHasEqualHashes() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let node = chance.node(depth: 3)
            var shuffled = Node.empty
            for (key, child) in node.children.shuffled(using: &chance) { shuffled = shuffled.setting(key, to: child) }
            if !node.isLeaf { #expect(shuffled.with(priority: node.priority).hash == node.hash, "seed \(seed)") }
            let location = chance.path(3)
            let changed = node.setting(location, to: chance.node(depth: 1))
            // Hashes are of doubles, of which integers beyond 2^53 share one.
            func asDoubles(_ node: Node) -> String {
                string(of: node).split(separator: "9007199254740993", omittingEmptySubsequences: false)
                    .joined(separator: "9007199254740992.0")
            }
            if try tree(asDoubles(changed)) != tree(asDoubles(node)) {
                #expect(changed.hash != node.hash, "seed \(seed): \(string(of: node)) and \(string(of: changed))")
            }
        }
    }
}

@Suite struct CompoundHashTests {
    struct Sample: Sendable {
        let data: String
        let length: Int
        let paths: [String]
        let hashes: [String]
    }

    /// Source: the public SDKs for Apple and Android.
    static let samples = [
        Sample(
            data: "{\"a\":1,\"b\":\"x\\\"y\",\"c\":{\"d\":true}}", length: .max, paths: ["c/d"],
            hashes: ["ZHAotIWovjL0+OwTBd8u2BCQbms=", ""]),
        Sample(
            data: "{\"a\":\"aaaaaaaaaa\",\"c\":{\"d\":true,\"e\":{\".value\":\"v\",\".priority\":3}}}", length: 20,
            paths: ["a", "c/d", "c/e"],
            hashes: [
                "qWGp/zYUQ3eJpS5oOTTSOLr1nIA=", "o3FkxDqm1aCnDS2V8osJI/XGLKI=", "hOhdlQTxwbKUPbkVQdHeqpjCeQ8=", "",
            ]),
        Sample(data: "\"leaf\"", length: .max, paths: ["/"], hashes: ["VzY3K/KprOmpGGrk0qFm5kfIo0I=", ""]),
        Sample(
            data: "{\"k\":{\"n\":1,\"z\":2,\".priority\":\"p\"}}", length: .max, paths: ["k/z"],
            hashes: ["xmcF8EkLsdRDDY5MnLr2AA+Rj8U=", ""]),
        Sample(data: "null", length: .max, paths: [], hashes: [""]),
    ]

    @Test(arguments: samples)
    func compoundHashesAreTheSDKs(_ sample: Sample) throws {
        let hash = CompoundHash(of: try tree(sample.data), splittingOver: sample.length)
        #expect(
            hash.wire == [
                "hs": .array(sample.hashes.map { .string($0) }), "ps": .array(sample.paths.map { .string($0) }),
            ])
        #expect(try CompoundHash(wire: hash.wire) == hash)
        #expect(hash.differences(from: try tree(sample.data)).isEmpty)
    }

    @Test func theEstimateIsTheSDKs() throws {
        let sizes: [(String, Int)] = [
            ("null", 4), ("1", 8), ("2.5", 8), ("true", 4), ("\"\u{1F600}\"", 4),
            ("{\".value\":1,\".priority\":\"p\"}", 35),
            ("{\"a\":1}", 1 + 5 + 8), ("{\"ab\":true,\".priority\":2}", 1 + 6 + 4 + 13 + 8),
        ]
        for (data, size) in sizes { #expect(CompoundHash.estimatedSize(of: try tree(data)) == size, "\(data)") }
        let small = Node(.string(String(repeating: "x", count: 1022)))
        #expect(!CompoundHash.isWorthwhile(for: small))
        #expect(CompoundHash.isWorthwhile(for: Node(.string(String(repeating: "x", count: 1023)))))
    }

    @Test func aLargeTreeIsCutByItsSize() throws {
        let node = Node(children: (0..<2000).map { (TreeKey("key\($0)"), Node(.integer($0))) })
        let hash = CompoundHash(of: node)
        // About 38 kB: ranges of two thousand characters.
        #expect((20...60).contains(hash.paths.count))
        let changed = node.setting(TreeKey("key700"), to: Node("other"))
        let ranges = hash.differences(from: changed)
        #expect(ranges.count == 1)
        #expect(ranges[0].node.childCount < 200)
        #expect(ranges[0].applied(to: node) == changed)
    }

    @Test(arguments: [
        "{}", "[]", "{\"hs\":[],\"ps\":[]}", "{\"hs\":[\"\"],\"ps\":[\"a\"]}", "{\"hs\":[1,\"\"],\"ps\":[\"a\"]}",
        "{\"hs\":[\"\",\"\"],\"ps\":[1]}", "{\"hs\":[\"x\",\"y\",\"\"],\"ps\":[\"b\",\"a\"]}",
        "{\"hs\":[\"x\",\"y\",\"\"],\"ps\":[\"b\",\"b\"]}", "{\"hs\":[\"x\",\"\"],\"ps\":[\"$\"]}",
    ])
    func aBrokenCompoundHashIsRefused(_ wire: String) throws {
        let wire = try json(wire)
        #expect(throws: TreeDataError.self) { try CompoundHash(wire: wire) }
    }

    /// Whatever data a client has: applying the received ranges results in the server's data.
    @Test func rangesLeadFromTheClientsDataToTheServers() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let client = chance.node(depth: 4)
            var server = client
            for _ in 0...chance.below(4) { server = server.applying(chance.change(depth: 4)) }
            if chance.isOne(in: 20) { server = chance.node(depth: 4) }
            let hash = CompoundHash(of: client, splittingOver: chance.below(150))
            var updated = client
            for range in hash.differences(from: server) {
                var string: [UInt8] = []
                range.append(to: &string)
                updated = try TreeRange(string).applied(to: updated)
            }
            try #require(
                updated.hash == server.hash,
                "seed \(seed): \(string(of: client)) became \(string(of: updated)), not \(string(of: server)); \(hash.paths)"
            )
        }
    }

    @Test("A node of many children costs the ranges that are named of it, not their product")
    func manyRanges() throws {
        let node = Node(children: (0..<20_000).map { (TreeKey("key\($0)"), Node(.integer($0))) })
        /// The CPU time of this thread in seconds.
        func seconds(_ length: Int) throws -> (ranges: Int, seconds: Double) {
            let known = CompoundHash(of: node, splittingOver: length)
            // Every second range differs from the server's.
            let hashes = known.hashes.enumerated().map { $0 % 2 == 0 ? .string("x") : JSONValue.string($1) }
            let received = try CompoundHash(wire: [
                "ps": .array(known.paths.map { .string($0.description) }), "hs": .array(hashes),
            ])
            let start = threadSeconds()
            return (received.differences(from: node).count, threadSeconds() - start)
        }
        let few = try seconds(20_000)
        let many = try seconds(100)
        #expect(few.ranges > 5 && many.ranges > 1_000)
        #expect(many.seconds < 10 * few.seconds, "\(few), \(many)")
    }

    @Test func aRangeReplacesWhatIsBehindItsStart() throws {
        let cases: [(old: String, start: String?, end: String?, new: String, result: String)] = [
            ("{\"a\":1,\"b\":2,\"c\":3}", "a", "b", "{\"b\":5}", "{\"a\":1,\"b\":5,\"c\":3}"),
            ("{\"a\":1,\"b\":2,\"c\":3}", "a", "b", "null", "{\"a\":1,\"c\":3}"),
            ("{\"a\":{\"x\":1},\"b\":2}", "a", nil, "{\"a\":{\"y\":1}}", "{\"a\":{\"y\":1}}"),
            ("{\"a\":1,\"b\":{\"x\":1}}", nil, "b", "{\"a\":2}", "{\"a\":2,\"b\":{\"x\":1}}"),
            ("{\"a\":1,\"b\":{\"x\":1}}", nil, "b", "{\"b\":2}", "{\"b\":2}"),
            ("{\"a\":1,\"b\":2}", nil, nil, "7", "7"),
            ("{\"b\":2}", "a/x", "a/z", "{\"a\":{\"y\":1}}", "{\"a\":{\"y\":1},\"b\":2}"),
            ("{\"a\":{\"b\":1,\".priority\":5}}", "a/-", "a/b", "{\"a\":{\"b\":2}}", "{\"a\":{\"b\":2}}"),
        ]
        for (old, start, end, new, result) in cases {
            let range = TreeRange(start: start.map { TreePath($0) }, end: end.map { TreePath($0) }, node: try tree(new))
            #expect(range.applied(to: try tree(old)) == (try tree(result)), "\(old) \(new)")
        }
    }
}
