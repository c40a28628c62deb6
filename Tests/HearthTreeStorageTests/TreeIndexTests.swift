@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTree
import Testing

@testable import HearthTreeStorage

@Suite struct TreeIndexTests {
    private static let definitions = [
        TreeIndexDefinition(pattern: ["groups", "$group"], index: .child("at")),
        TreeIndexDefinition(pattern: ["groups"], index: .child("name")),
        TreeIndexDefinition(pattern: ["$any"], index: .value),
    ]

    /// Groups with messages, more of them than a slice has.
    private static func groups(_ count: Int) -> Node {
        Node(
            children: (0..<count).map { group in
                let messages = (0..<30).map { message in
                    (TreeKey("m\(message)"), tree("{\"at\":\((group * 7 + message * 13) % 11),\"body\":\"t\"}"))
                }
                return (TreeKey("group\(group)"), Node(children: messages + [("name", Node(.string("n\(group % 5)")))]))
            })
    }

    private func entries(_ store: any Store) throws -> [[UInt8]: [UInt8]] {
        try contents(store)
    }

    /// The entries of a database that had the indexes from the beginning.
    private func wanted(_ root: Node, _ definitions: [TreeIndexDefinition]) throws -> [[UInt8]: [UInt8]] {
        let store = MemoryStore()
        let database = try TreeDatabase(name: "other", store: store, clock: SystemClock())
        try database.define(definitions)
        try database.write(TreeWrite((.root, root)))
        database.finishSettling()
        let all = try contents(store)
        database.close()
        return all
    }

    @Test(arguments: Engine.allCases)
    func indexesAreFilledInTheBackgroundWhileOthersWrite(engine: Engine) throws {
        let store = try LastingStore(engine)
        let database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        defer { database.close() }
        var model = Node.empty
        func write(_ path: TreePath, _ node: Node) throws {
            model = model.setting(path, to: node)
            try database.write(TreeWrite((path, node)))
        }
        try write("groups", Self.groups(60))
        try write("other", tree("{\"x\":{\"y\":1},\"z\":2}"))
        var query = TreeQuery()
        query.index = .child("at")
        query.start = TreeQuery.Bound(value: 3, key: .min)
        query.limit = 5
        var (before, number) = (0, 0)
        // If this thread gets no time while they are built, they are built again.
        for _ in 0..<100 where before == 0 {
            try database.define([])
            try database.define(Self.definitions)
            while database.isBuilding {
                let group = TreePath("groups/group\(number * 17 % 70)")
                switch number % 4 {
                case 0: try write(group + TreePath("m\(number % 40)"), tree("{\"at\":\(number % 9)}"))
                case 1: try write(group + "m5/at", .empty)
                case 2: try write(group, number % 8 == 2 ? .empty : 5)
                default: try write(group + TreePath("new\(number)/at/deep"), "x")
                }
                let window = try database.read { try $0.result(of: query, at: group) }
                if !window.isIndexed { before += 1 }
                #expect(window.children.map(\.key) == query.orderedChildren(of: model.node(at: group)).map(\.key))
                number += 1
            }
        }
        database.finishSettling()
        #expect(before > 0)
        #expect(try entries(store) == wanted(model, Self.definitions))
        for group in 0..<70 {
            let path = TreePath("groups/group\(group)")
            let window = try database.read { try $0.result(of: query, at: path) }
            #expect(window.isIndexed)
            #expect(window.children.map(\.node) == query.orderedChildren(of: model.node(at: path)).map(\.node))
        }
    }

    @Test(arguments: Engine.allCases)
    func buildingContinuesAfterTheNextStart(engine: Engine) throws {
        let store = try LastingStore(engine)
        let severed = SeveredStore(store)
        var database = try TreeDatabase(name: "test", store: severed, clock: SystemClock())
        let groups = Self.groups(50)
        try database.write(TreeWrite(("groups", groups)))
        // The definitions, and the first part of what is built.
        severed.sever(afterWrites: 2)
        try database.define(Self.definitions)
        database.close()
        #expect(database.isBuilding)
        #expect(try entries(store) != wanted(Node(children: [(TreeKey("groups"), groups)]), Self.definitions))
        store.close()
        database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        database.finishBuilding()
        database.finishSettling()
        let root = Node(children: [(TreeKey("groups"), groups)])
        #expect(try entries(store) == wanted(root, Self.definitions))

        try database.define([Self.definitions[1]])
        #expect(database.readyIndexes == [Self.definitions[1]])
        database.close()
        database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        database.finishBuilding()
        database.finishSettling()
        let bytes = try entries(store).keys.filter { $0[1] == PathCode.Space.index }
        #expect(bytes.count == 50)
        database.close()
    }

    @Test func theSameDefinitionsAreNotBuiltAgain() throws {
        let store = try LastingStore(.memory)
        let database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        defer { database.close() }
        try database.write(TreeWrite(("groups", Self.groups(5))))
        try database.define(Self.definitions)
        database.finishBuilding()
        database.finishSettling()
        let before = try contents(store)
        let others = [
            TreeIndexDefinition(pattern: ["$other"], index: .value), Self.definitions[1],
            TreeIndexDefinition(pattern: ["groups", "$r"], index: .child("at")), Self.definitions[1],
            TreeIndexDefinition(pattern: ["groups"], index: .key), TreeIndexDefinition(pattern: [], index: .priority),
        ]
        try database.define(others)
        #expect(!database.isBuilding)
        #expect(database.readyIndexes.count == 3)
        #expect(try contents(store) == before)
        // A definition that is added again after its deletion makes another index.
        try database.define([])
        try database.define(Self.definitions)
        database.finishBuilding()
        database.finishSettling()
        #expect(try contents(store).count == before.count)
        #expect(try contents(store) != before)
    }

    /// A list of all indexes is made only a few times while they are filled, however many there are.
    @Test(arguments: [10, 100, 1000]) func manyEmptyIndexesMakeFewLists(count: Int) throws {
        let store = MemoryStore()
        let builder = TreeIndexBuilder(store: store)
        func definitions(_ range: Range<Int>) -> [TreeIndexDefinition] {
            range.map { TreeIndexDefinition(pattern: ["p\($0)"], index: .value) }
        }
        func finish(_ indexes: TreeIndexes) throws -> (indexes: TreeIndexes, lists: Int) {
            var (indexes, lists) = (indexes, 0)
            while !indexes.all.allSatisfy({ $0.state == .ready }) {
                let next = try builder.slice(of: indexes)
                if next !== indexes { lists += 1 }
                indexes = next
            }
            return (indexes, lists)
        }
        let (built, lists) = try finish(try builder.change(TreeIndexes([]), to: definitions(0..<count)))
        #expect(lists <= 12)
        #expect(built.all.count == count)
        // The definitions change while some indexes are complete but not yet changed in the list.
        var half = try builder.slice(of: try builder.change(built, to: definitions(count..<3 * count)))
        half = try builder.change(half, to: definitions(0..<count))
        let (again, more) = try finish(half)
        #expect(more <= 14)
        #expect(again.all.count == count && again.all.allSatisfy { $0.definition.pattern[0].count <= 4 })
        #expect(try entries(store).isEmpty)
        let kept = try store.snapshot()
        defer { kept.close() }
        let cursor = try kept.scan(.meta, KeyRange(prefix: TreeMeta.indexPrefix), reverse: false, values: true)
        defer { cursor.close() }
        var stored = 0
        while try cursor.next() { stored += 1 }
        #expect(stored == count)
    }

    /// A write reads the indexes above its location.
    @Test func indexesOfALocationAreFoundWithoutExaminingOthers() throws {
        var steps: [Int] = []
        for count in [100, 1000, 10_000] {
            let all = (0..<count).map { number in
                TreeIndex(
                    id: UInt32(number),
                    definition: TreeIndexDefinition(
                        pattern: number % 3 == 0 ? ["$any", "p\(number)"] : ["p\(number)", "$any"], index: .value),
                    state: .ready)
            }
            let indexes = TreeIndexes(all.compactMap { $0 })
            let path = TreePath(keys: ["p7", "p9", "x"])
            #expect(Set(indexes.above(path).map(\.id)) == [7, 9])
            steps.append(indexes.stepsAbove(path))
        }
        #expect(steps[0] <= 8)
        #expect(steps[1] == steps[0] && steps[2] == steps[0])
    }

    @Test func tooManyDefinitionsAreRefused() throws {
        let database = try TreeDatabase(name: "test", store: MemoryStore(), clock: SystemClock())
        defer { database.close() }
        let definitions = (0...Limits.treeIndexesMax).map { TreeIndexDefinition(pattern: ["p\($0)"], index: .value) }
        #expect(throws: Status.self) { try database.define(definitions) }
        #expect(database.readyIndexes.isEmpty && !database.isBuilding)
    }

    @Test func aPatternMatchesOnlyItsLocations() throws {
        let store = MemoryStore()
        let database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        defer { database.close() }
        let root = tree(
            """
            {"0":{"k":{"v":1}},"a":{"k":{"v":2}},"b":{"k":{"v":3},"l":4,"m":{"v":{"w":5}}},"b2":{"k":{"v":6}},"c":7}
            """)
        try database.write(TreeWrite((.root, root)))
        try database.define([TreeIndexDefinition(pattern: ["b"], index: .child("v"))])
        database.finishBuilding()
        database.finishSettling()
        let found = try contents(store).keys.filter { $0[1] == PathCode.Space.index }
        #expect(found.count == 3)
        var query = TreeQuery()
        query.index = .child("v")
        query.limit = 9
        try database.read { view in
            let keys = try view.keys(of: query, at: "b")
            #expect(keys.isIndexed)
            #expect(keys.children.map(\.key) == ["l", "k", "m"])
            #expect(keys.children.map(\.value) == [.null, .scalar(3.0), .inner])
            #expect(try !view.keys(of: query, at: "a").isIndexed)
        }
    }
}
