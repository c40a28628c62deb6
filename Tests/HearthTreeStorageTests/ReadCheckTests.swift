@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTree
import Testing

@testable import HearthTreeStorage

/// Reads end when they are not wanted any more.
@Suite struct ReadCheckTests {
    private let database: TreeDatabase
    private static let childCount = 5000

    init() throws {
        database = try TreeDatabase(name: "test", store: MemoryStore(), clock: SystemClock())
        let children = (0..<Self.childCount).map { (TreeKey("k\($0)"), Node(.integer(Int64($0)))) }
        _ = database.begin(TreeWrite(("a", Node(children: children)))).wait()
    }

    private static func query(_ index: TreeQuery.Index) -> TreeQuery {
        var query = TreeQuery()
        query.index = index
        query.limit = childCount
        return query
    }

    private static let reads: [(name: String, read: @Sendable (TreeView) throws -> Void)] = [
        ("node", { _ = try $0.node(at: "a") }),
        ("hash", { _ = try $0.hash(at: "a") }),
        ("JSON", { try $0.writeJSON(at: "a", form: .export) { (piece: inout [UInt8]) in piece = [] } }),
        ("keys in their order", { _ = try $0.keys(of: query(.key), at: "a") }),
        ("keys by value, without an index", { _ = try $0.keys(of: query(.value), at: "a") }),
        ("children by value", { _ = try $0.result(of: query(.value), at: "a") }),
        ("hash of a query", { _ = try $0.hash(of: query(.value), at: "a") }),
        (
            "JSON of a query",
            { try $0.writeJSON(of: query(.key), at: "a", form: .export) { (piece: inout [UInt8]) in piece = [] } }
        ),
    ]

    @Test(arguments: reads.indices)
    func aReadEndsSoonAfterItIsNotWantedAnyMore(_ index: Int) throws {
        let (name, read) = Self.reads[index]
        let view = try database.view()
        defer { view.close() }
        var asked = 0
        view.askWhileReading { asked += 1 }
        try read(view)
        #expect(asked >= Self.childCount / ReadCheck.readsMax, "\(name)")
        // A view with two checks calls each of them.
        var again = 0
        view.askWhileReading { () throws(Status) in
            again += 1
            if again == 3 { throw Status(.cancelled, "Nobody waits.") }
        }
        asked = 0
        #expect(throws: Status(.cancelled, "Nobody waits."), "\(name)") { try read(view) }
        #expect(asked == 3 && again == 3, "\(name)")
    }
}
