@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTreeStorage

/// Thousands of random writes on every engine, compared with a tree in memory.
@Suite struct RandomTreeTests {
    private static let definitions = [
        TreeIndexDefinition(pattern: [], index: .child("a")), TreeIndexDefinition(pattern: [], index: .value),
        TreeIndexDefinition(pattern: ["a"], index: .child("a/b")), TreeIndexDefinition(pattern: ["$x"], index: .value),
        TreeIndexDefinition(pattern: ["$x", "$y"], index: .child("b")),
        TreeIndexDefinition(pattern: ["b", "$y", "a"], index: .child("a")),
    ]

    @Test(arguments: Engine.allCases, [false, true])
    func storesWhatANaiveTreeHas(engine: Engine, isIndexed: Bool) throws {
        let seed = TestRun.seed()
        try run(engine, isIndexed, TreeWriterOptions(), seed, writes: 600 * TestRun.effort)
    }

    @Test(arguments: Engine.allCases, [false, true])
    func storesTheSameInSlices(engine: Engine, isIndexed: Bool) throws {
        let seed = TestRun.seed()
        try run(engine, isIndexed, .sliced(), seed, writes: 500 * TestRun.effort)
    }

    /// All but the smallest are made on a shadow of the tree.
    @Test(arguments: Engine.allCases, [false, true])
    func storesTheSameOnAShadow(engine: Engine, isIndexed: Bool) throws {
        let seed = TestRun.seed()
        var options = TreeWriterOptions.sliced()
        options.replacementLocationsMax = 0
        try run(engine, isIndexed, options, seed, writes: 300 * TestRun.effort)
    }

    private func run(
        _ engine: Engine, _ isIndexed: Bool, _ options: TreeWriterOptions, _ seed: UInt64, writes: Int
    ) throws {
        var trees = RandomTrees(seed)
        let store = try LastingStore(engine)
        var database = try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
        defer { database.close() }
        if isIndexed {
            try database.define(Self.definitions)
            database.finishBuilding()
        }
        var model = Node.empty
        var version: Int64 = 0
        for step in 0..<writes {
            let note: Comment = "seed \(seed), step \(step)"
            let changes = trees.changes()
            let resolved = try changes.map { try $0.resolved(nowMilliseconds: testNow, old: model) }
            let before = model
            model = model.applying(resolved)
            let commit = try database.write(TreeWrite(changes: changes, nowMilliseconds: testNow))
            #expect(commit.changes == resolved, note)
            // Data that is replaced in slices is not compared.
            #expect(!commit.isNoChange || model == before, note)
            #expect(commit.isNoChange || model != before || options.replacementNodesMin < 10, note)
            #expect(commit.version > version, note)
            version = commit.version
            try database.read { view in
                #expect(view.version == version, note)
                try compare(view, model, &trees, note)
            }
            if step % 10 == 9, trees.random.chance(20) {
                // The rest of a large write is made by the next start.
                database.close()
                database = try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
            }
            if step % 100 == 99 {
                database.finishSettling()
                try compareAll(store, model, isIndexed, note)
                #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [], note)
                if trees.random.chance(20) {
                    database.close()
                    database = try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
                }
            }
            // Trees that only grow would hardly ever be empty again.
            if trees.random.chance(1) {
                model = .empty
                try database.write(TreeWrite((.root, .empty)))
                database.finishSettling()
                #expect(try contents(store).isEmpty, note)
            }
        }
    }

    private func compare(_ view: TreeView, _ model: Node, _ trees: inout RandomTrees, _ note: Comment) throws {
        let path = trees.path(4)
        let expected = model.node(at: path)
        #expect(try view.node(at: path) == expected, note)
        #expect(try view.value(at: path) == expected.value, note)
        #expect(try view.leaf(at: path) == expected.leaf(at: .root), note)
        #expect(try view.priority(at: path) == expected.priority, note)
        #expect(try view.exists(at: path) == !expected.isEmpty, note)
        #expect(try view.hasChildren(at: path) == (expected.childCount > 0), note)
        #expect(try view.hash(at: path) == expected.hash, note)
        let key = trees.random.chance(50) ? trees.key() : nil
        let limit = trees.random.below(5)
        #expect(
            try view.children(of: path, after: key, limit: limit)
                == expected.keys(at: .root, after: key, limit: limit), note)
        for form in [TreeJSON.Form.plain, .export] {
            var string: [UInt8] = [1]
            try view.appendJSON(at: path, to: &string, form: form)
            var wanted: [UInt8] = [1]
            TreeJSON.append(expected, to: &wanted, form: form)
            #expect(string == wanted, note)
        }
        for _ in 0..<3 {
            let query = trees.query()
            let location = trees.path(3)
            try compare(view, query, location, model.node(at: location), note)
        }
    }

    private func compare(
        _ view: TreeView, _ query: TreeQuery, _ location: TreePath, _ node: Node, _ note: Comment
    ) throws {
        let wanted = query.orderedChildren(of: node)
        let found = try view.result(of: query, at: location)
        let comment: Comment = "\(note), \(query) at \(location)"
        #expect(found.children.map(\.key) == wanted.map(\.key), comment)
        #expect(found.children.map(\.node) == wanted.map(\.node), comment)
        let keys = try view.keys(of: query, at: location)
        #expect(keys.isIndexed == found.isIndexed, comment)
        #expect(keys.children.map(\.key) == wanted.map(\.key), comment)
        for (key, child) in zip(keys.children, wanted) {
            #expect(TreeIndexValue.compare(key.value, query.indexValue(of: child.node)) == 0, comment)
        }
        let isDefined = Self.definitions.contains {
            $0.index == query.index && $0.pattern.count == location.count
                && zip($0.pattern, location.keys).allSatisfy { $0.hasPrefix("$") || TreeKey($0) == $1 }
        }
        let isNative = query.index == .key || query.index == .priority
        #expect(found.isIndexed == (isNative || isDefined && !view.indexes.all.isEmpty), comment)
    }

    /// Every record and entry equals that of a database to which the tree was written at once: no other record is left.
    private func compareAll(_ store: any Store, _ model: Node, _ isIndexed: Bool, _ note: Comment) throws {
        let other = MemoryStore()
        let database = try TreeDatabase(name: "other", store: other, clock: SystemClock())
        defer { database.close() }
        if isIndexed { try database.define(Self.definitions) }
        try database.write(TreeWrite((.root, model)))
        #expect(try contents(store) == contents(other), note)
    }
}
