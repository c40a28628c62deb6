import HearthModel
import HearthStorage
import HearthTree
import Testing

@testable import HearthTreeStorage

/// JSON that is written piece by piece is the JSON that is written at once.
@Suite struct JSONPiecesTests {
    private func database() throws -> TreeDatabase {
        try TreeDatabase(name: "pieces", store: try LastingStore(.memory), clock: StoppedClock())
    }

    @Test(arguments: [TreeJSON.Form.plain, .export]) func piecesMakeTheWhole(_ form: TreeJSON.Form) throws {
        let seed = SeededRandom.seed()
        var trees = RandomTrees(seed)
        let database = try database()
        defer { database.close() }
        for round in 0..<100 * SeededRandom.effort {
            try database.write(TreeWrite((.root, trees.node(4))))
            let path = round.isMultiple(of: 3) ? trees.path(2) : .root
            try database.read { view in
                var whole: [UInt8] = []
                try view.appendJSON(at: path, to: &whole, form: form)
                for pieceBytes in [1, 17, 200, 1 << 20] {
                    var joined: [UInt8] = []
                    try view.writeJSON(at: path, form: form, pieceBytes: pieceBytes) { piece throws(Status) in
                        joined += piece
                        piece.removeAll()
                    }
                    #expect(joined == whole, "seed \(seed), round \(round), pieces of \(pieceBytes)")
                }
            }
        }
    }

    @Test func onlyWhatMayBeAnArrayIsKept() throws {
        let database = try database()
        defer { database.close() }
        let text = Node(.string(String(repeating: "x", count: 100)))
        let names = Node(children: (0..<500).map { (TreeKey("n\($0)"), text) })
        let numbers = Node(children: (0..<500).map { (TreeKey($0), text) })
        try database.write(TreeWrite(("names", names), ("numbers", numbers)))
        func largest(_ path: TreePath) throws -> Int {
            var largest = 0
            try database.read { view in
                try view.writeJSON(at: path, form: .plain, pieceBytes: 1000) { piece throws(Status) in
                    largest = max(largest, piece.count)
                    piece.removeAll()
                }
            }
            return largest
        }
        #expect(try largest("names") < 1200)
        #expect(try largest("numbers") > 50_000)
    }

    @Test func theSinkCanEndIt() throws {
        let database = try database()
        defer { database.close() }
        try database.write(TreeWrite((.root, tree(#"{"a": 1, "b": 2}"#))))
        let enough = Status.invalidArgument("enough")
        _ = try database.read { view in
            #expect(throws: enough) {
                try view.writeJSON(at: .root, form: .plain, pieceBytes: 1) { _ throws(Status) in throw enough }
            }
        }
    }
}
