import HearthModel
import HearthDocuments
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTreeStorage

/// JSON that is written piece by piece equals the JSON that is written at once.
@Suite struct JSONPiecesTests {
    private func database() throws -> TreeDatabase {
        try TreeDatabase(name: "pieces", store: try LastingStore(.memory), clock: StoppedClock())
    }

    @Test(arguments: [TreeJSON.Form.plain, .export]) func piecesMakeTheWhole(_ form: TreeJSON.Form) throws {
        let seed = TestRun.seed()
        var trees = RandomTrees(seed)
        let database = try database()
        defer { database.close() }
        for round in 0..<100 * TestRun.effort {
            try database.write(TreeWrite((.root, trees.node(4))))
            let path = round.isMultiple(of: 3) ? trees.path(2) : .root
            try database.read { view in
                var whole: [UInt8] = []
                try view.appendJSON(at: path, to: &whole, form: form)
                for (pieceBytes, undecided) in [(1, .max), (1, 0), (17, .max), (17, 40), (200, 0), (1 << 20, 0)] {
                    var joined: [UInt8] = []
                    try view.writeJSON(
                        at: path, form: form, pieceBytes: pieceBytes, undecidedBytesMax: undecided
                    ) { piece throws(Status) in
                        joined += piece
                        piece.removeAll()
                    }
                    #expect(
                        joined == whole, "seed \(seed), round \(round), pieces of \(pieceBytes), kept \(undecided)")
                }
            }
        }
    }

    /// Arrays of arrays, with gaps, of too few elements, and with other names behind many indexes.
    private func arrays(_ random: inout SeededGenerator, depth: Int) -> Node {
        if depth == 0 { return Node(.integer(Int64(random.below(1000)))) }
        let step = random.below(4) + 1
        var children: [(TreeKey, Node)] = []
        for index in stride(from: random.below(2), to: random.below(12) + 1, by: step) {
            children.append((TreeKey(index), arrays(&random, depth: depth - 1 - random.below(2) * (depth - 1))))
        }
        if random.below(4) == 0 { children.append((TreeKey("name"), arrays(&random, depth: depth - 1))) }
        // No index, but among them in the order of keys.
        if random.below(4) == 0 {
            children.append((TreeKey("0\(random.below(6))"), arrays(&random, depth: depth - 1)))
        }
        return Node(children: children)
    }

    @Test func possibleArraysAreDeterminedAhead() throws {
        let seed = TestRun.seed()
        var random = SeededGenerator(seed: seed)
        let database = try database()
        defer { database.close() }
        for round in 0..<200 * TestRun.effort {
            let node = arrays(&random, depth: 4)
            try database.write(TreeWrite((.root, node)))
            var query = TreeQuery()
            query.index = .key
            if random.chance(50) { query.limit = random.below(6) + 1 }
            query.isLimitedToLast = random.chance(50)
            try database.read { view in
                for undecided in [0, 10, 50, .max] {
                    var joined: [UInt8] = []
                    let sink: (inout [UInt8]) throws(Status) -> Void = { piece throws(Status) in
                        joined += piece
                        piece.removeAll()
                    }
                    try view.writeJSON(at: .root, form: .plain, pieceBytes: 1, undecidedBytesMax: undecided, sink)
                    var whole: [UInt8] = []
                    TreeJSON.append(node, to: &whole, form: .plain)
                    #expect(joined == whole, "seed \(seed), round \(round), kept \(undecided)")
                    joined = []
                    try view.writeJSON(
                        of: query, at: .root, form: .plain, pieceBytes: 1, undecidedBytesMax: undecided, sink)
                    whole = []
                    TreeJSON.append(query.result(of: node), to: &whole, form: .plain)
                    #expect(joined == whole, "seed \(seed), round \(round), kept \(undecided), of a query")
                }
            }
        }
    }

    @Test func heldBackOutputOfAPossibleArrayIsBounded() throws {
        let database = try database()
        defer { database.close() }
        let string = Node(.string(String(repeating: "x", count: 100)))
        let names = Node(children: (0..<500).map { (TreeKey("n\($0)"), string) })
        let numbers = Node(children: (0..<500).map { (TreeKey($0), string) })
        let deep = Node(children: (0..<20).map { (TreeKey($0), numbers) })
        try database.write(TreeWrite(("names", names), ("numbers", numbers), ("deep", deep)))
        func largest(_ path: TreePath) throws -> Int {
            var largest = 0
            try database.read { view in
                try view.writeJSON(
                    at: path, form: .plain, pieceBytes: 1000, undecidedBytesMax: 5000
                ) { piece throws(Status) in
                    largest = max(largest, piece.count)
                    piece.removeAll()
                }
            }
            return largest
        }
        #expect(try largest("names") < 1200)
        #expect((4000..<6000).contains(try largest("numbers")))
        #expect(try largest("deep") < 6000)
    }

    @Test func theSinkCanEndIt() throws {
        let database = try database()
        defer { database.close() }
        try database.write(TreeWrite((.root, tree(#"{"a": 1, "b": 2}"#))))
        let enough = Status.invalidArgument("enough")
        _ = try database.read { view in
            #expect(throws: enough) {
                try view.writeJSON(at: .root, form: .plain, pieceBytes: 1, undecidedBytesMax: 0) { _ throws(Status) in
                    throw enough
                }
            }
        }
    }
}
