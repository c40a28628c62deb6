import HearthModel
import HearthTestSupport
import HearthTree
import Testing

/// A tree that only answers by the protocol's functions, and records when a whole subtree is read.
private final class CountingTree: TreeData {
    let root: Node
    var nodesRead = 0
    var keysRead = 0

    init(_ root: Node) { self.root = root }

    func value(at path: TreePath) -> Scalar? { root.value(at: path) }
    func leaf(at path: TreePath) -> Leaf? { root.leaf(at: path) }
    func priority(at path: TreePath) -> Scalar? { root.priority(at: path) }
    func hasChildren(at path: TreePath) -> Bool { root.hasChildren(at: path) }
    func exists(at path: TreePath) -> Bool { root.exists(at: path) }

    func node(at path: TreePath) -> Node {
        nodesRead += 1
        return root.node(at: path)
    }

    func keys(at path: TreePath, after key: TreeKey?, limit: Int) -> [TreeKey] {
        let keys = root.keys(at: path, after: key, limit: limit)
        keysRead += keys.count
        return keys
    }
}

@Suite struct TreeOverlayTests {
    private func after(_ data: String, _ changes: [(path: String, data: String)]) throws -> String {
        let changes = try changes.map { TreeChange(path: TreePath($0.path), node: try tree($0.data)) }
        let base = try tree(data)
        let result = base.applying(changes)
        #expect(try TreeOverlay(base: base, changes: changes).node(at: .root) == result)
        return string(of: result)
    }

    @Test func writesBelowALeafReplaceIt() throws {
        #expect(
            try after("{\"a\":{\".value\":5,\".priority\":1}}", [("a/b/c", "2")])
                == "{\"a\":{\"b\":{\"c\":2},\".priority\":1}}")
        #expect(try after("{\"a\":5}", [("a/b", "null")]) == "{\"a\":5}")
        #expect(try after("{\"a\":5}", [("a/b", "null"), ("a/c", "1")]) == "{\"a\":{\"c\":1}}")
        #expect(try after("{\"a\":5}", [("a/b", "1"), ("a/b", "null")]) == "{\"a\":5}")
        #expect(try after("7", [("", "{\"x\":1}")]) == "{\"x\":1}")
    }

    @Test func aParentIsDeletedWithItsLastChild() throws {
        let data = "{\"a\":{\"b\":1,\"c\":2,\".priority\":\"p\"},\".priority\":3}"
        #expect(try after(data, [("a/b", "null")]) == "{\"a\":{\"c\":2,\".priority\":\"p\"},\".priority\":3}")
        #expect(try after(data, [("a/b", "null"), ("a/c", "{}")]) == "null")
        #expect(try after(data, [("a", "null"), ("x", "1")]) == "{\"x\":1,\".priority\":3}")
        // At once: the node always has a child, whatever the order.
        #expect(
            try after(data, [("a/b", "null"), ("a/c", "null"), ("a/d", "1")])
                == "{\"a\":{\"d\":1,\".priority\":\"p\"},\".priority\":3}")
    }

    @Test func prioritiesAreSetWhereSomethingIs() throws {
        #expect(try after("{\"a\":1}", [("a/.priority", "2")]) == "{\"a\":{\".value\":1,\".priority\":2}}")
        #expect(try after("{\"a\":1}", [("b/.priority", "2")]) == "{\"a\":1}")
        #expect(try after("{\"a\":1}", [("a/b/.priority", "2")]) == "{\"a\":1}")
        #expect(try after("null", [("a/.priority", "2"), ("a/b", "1")]) == "{\"a\":{\"b\":1,\".priority\":2}}")
        #expect(try after("{\"a\":{\"b\":1}}", [("a/.priority", "2"), ("a/b", "null")]) == "null")
        #expect(try after("{\"a\":{\".value\":1,\".priority\":2}}", [("a/.priority", "null")]) == "{\"a\":1}")
        #expect(try after("{\"a\":{\".value\":1,\".priority\":2}}", [("a", "3")]) == "{\"a\":3}")
        #expect(try after("1", [(".priority", "\"x\"")]) == "{\".value\":1,\".priority\":\"x\"}")
        #expect(try after("1", [(".priority", "2"), ("a", "1")]) == "{\"a\":1,\".priority\":2}")
    }

    @Test func laterChangesHoldAboveAndBelow() throws {
        #expect(try after("{\"a\":{\"x\":1}}", [("a/b", "1"), ("a", "{\"c\":2}")]) == "{\"a\":{\"c\":2}}")
        #expect(try after("{\"a\":{\"x\":1}}", [("a", "{\"c\":2}"), ("a/b", "1")]) == "{\"a\":{\"b\":1,\"c\":2}}")
        #expect(try after("{\"a\":{\"x\":1}}", [("a", "{\"c\":2}"), ("a/c", "null")]) == "null")
        #expect(try after("null", [("a", "1"), ("a/.priority", "2")]) == "{\"a\":{\".value\":1,\".priority\":2}}")
    }

    /// Every function shows the data of the changed node.
    @Test func anOverlayIsTheChangedTree() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<1500 {
            let base = chance.node(depth: 3)
            let changes = (0...chance.below(4)).map { _ in chance.change(depth: 3) }
            let changed = base.applying(changes)
            let overlay = TreeOverlay(base: CountingTree(base), changes: changes)
            let note = "seed \(seed): \(string(of: base)) with \(changes.map { "\($0.path)=\(string(of: $0.node))" })"
            var locations = Set((0..<10).map { _ in chance.path(4) })
            for change in changes {
                for depth in 0...change.path.count {
                    locations.insert(TreePath(keys: Array(change.path.keys.prefix(depth))))
                }
            }
            for path in locations where !path.keys.contains(.priority) {
                try #require(try overlay.node(at: path) == changed.node(at: path), "\(note) at \(path)")
                try #require(try overlay.value(at: path) == changed.value(at: path), "\(note) at \(path)")
                try #require(try overlay.leaf(at: path) == changed.leaf(at: path), "\(note) at \(path)")
                try #require(try overlay.priority(at: path) == changed.priority(at: path), "\(note) at \(path)")
                try #require(try overlay.exists(at: path) == changed.exists(at: path), "\(note) at \(path)")
                try #require(try overlay.hasChildren(at: path) == changed.hasChildren(at: path), "\(note) at \(path)")
                let key = chance.isOne(in: 2) ? chance.key() : nil
                let limit = 1 + chance.below(5)
                try #require(
                    try overlay.keys(at: path, after: key, limit: limit)
                        == changed.keys(at: path, after: key, limit: limit),
                    "\(note) at \(path) after \(key as Any)")
            }
        }
    }

    /// Non-overlapping changes have the same result as nodes that are set one after another, as long as none removes.
    @Test func changesOneAfterAnotherAreTheSame() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<1500 {
            let base = chance.node(depth: 3)
            let changes = (0...chance.below(3)).map { _ in
                TreeChange(path: chance.path(3), node: Node(chance.scalar(), priority: chance.priority()))
            }
            let single = changes.reduce(base) { $0.applying($1) }
            #expect(single == changes.reduce(base) { $0.setting($1.path, to: $1.node) })
            try #require(
                base.applying(changes) == single,
                "seed \(seed): \(string(of: base)) with \(changes.map { "\($0.path)=\(string(of: $0.node))" })")
        }
    }

    @Test func readingALocationDoesNotReadItsTree() throws {
        let users = (0..<1000).map { (TreeKey("u\($0)"), Node(children: [(TreeKey("name"), Node("n"))])) }
        let base = CountingTree(Node(children: [(TreeKey("users"), Node(children: users, priority: 7))]))
        let changes = (0..<10).map { TreeChange(path: TreePath("users/u\($0)"), node: .empty) }
        let overlay = TreeOverlay(base: base, changes: changes)
        #expect(try overlay.exists(at: "users"))
        #expect(try overlay.priority(at: "users") == 7)
        #expect(try overlay.hasChildren(at: "users"))
        #expect(try overlay.exists(at: .root))
        #expect(try !overlay.exists(at: "users/u1/name"))
        #expect(try overlay.value(at: "users/u11/name") == "n")
        #expect(base.nodesRead == 0)
        #expect(base.keysRead < 100)
    }
}

@Suite struct TreeUpdateTests {
    private func merge(_ data: String, at path: String = "p") throws -> TreeUpdate {
        try TreeJSON.merge(Array(data.utf8), at: TreePath(path))
    }

    @Test func anUpdateNamesKeysAndPaths() throws {
        let update = try merge("{\"a\":1,\"b/c\":{\"d\":2},\"/x//y/\":null,\"b/.priority\":3,\".priority\":\"p\"}")
        #expect(
            update.changes == [
                TreeChange(path: "p/a", node: Node(1)), TreeChange(path: "p/b/c", node: try tree("{\"d\":2}")),
                TreeChange(path: "p/x/y", node: .empty), TreeChange(path: "p/b/.priority", node: Node(3)),
                TreeChange(path: "p/.priority", node: Node("p")),
            ])
        #expect(update.isMerge && update.path == "p")
        let members: [(name: String, node: Node)] = [
            ("a", Node(1)), ("b/c", try tree("{\"d\":2}")), ("/x//y/", .empty), ("b/.priority", Node(3)),
            (".priority", Node("p")),
        ]
        #expect(try TreeUpdate.merge(at: "p", members: members) == update)
        #expect(try merge("{}").changes.isEmpty)
        #expect(TreeUpdate.set("p", Node(1)).changes == [TreeChange(path: "p", node: Node(1))])
    }

    @Test(arguments: ["[1]", "1", "null", "\"a\""])
    func anUpdateIsAnObject(_ data: String) {
        let error = #expect(throws: TreeDataError.self) { try merge(data) }
        #expect(
            error?.message
                == "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?")
    }

    @Test func anUpdateThatIsNoJSONIsRefusedAsSuch() {
        #expect(throws: TreeDataError.invalidJSON) { try merge("") }
        #expect(throws: TreeDataError.invalidJSON) { try merge("[") }
        #expect(throws: TreeDataError.invalidJSON) { try merge("{\"a\":1") }
    }

    @Test(arguments: [
        "{\"a\":1,\"a/b\":2}", "{\"a/b\":2,\"a\":1}", "{\"a/b\":2,\"a/b/c/d\":1}", "{\"a\":1,\"/a\":2}",
        "{\"a\":1,\"a/.priority\":2}",
        "{\"a\":1,\"b\":2,\"a0\":1,\"a/x\":3}", "{\"a\":1,\"a\":2}",
    ])
    func pathsOfAnUpdateDoNotMeet(_ data: String) throws {
        #expect(throws: TreeDataError.self) { try merge(data) }
        let members = try TreeJSON.members(Array(data.utf8)).map { member in
            (name: member.name, node: try TreeJSON.node(Array(data.utf8), in: member.value))
        }
        #expect(throws: TreeDataError.self) { try TreeUpdate.merge(at: .root, members: members) }
    }

    @Test(arguments: [
        ("{\"\":1}", "1:2"), ("{\"/\":1}", "1:2"), ("{\"a\":1,\n\"b/$c\":1}", "2:1"), ("{\".value\":1}", "1:2"),
        ("{\".priority/a\":1}", "1:2"), ("{\"a/.sv\":1}", "1:2"), ("{\"a\":{\"b/c\":1}}", "1:7"),
    ])
    func invalidNamesAreReportedByTheirPosition(_ data: String, _ position: String) {
        let error = #expect(throws: TreeDataError.self) { try merge(data) }
        #expect(error?.message.hasPrefix("Invalid data; couldn't parse key beginning at \(position). Key") == true)
    }

    @Test func depthIsCountedFromTheRoot() throws {
        let path = Array(repeating: "k", count: 30).joined(separator: "/")
        _ = try merge("{\"a/b\":1,\"a/.priority\":1}".replacingFirst("\"a/b\":1,", with: "\"b/c\":1,"), at: path)
        #expect(throws: TreeDataError.self) { try merge("{\"a/b/c\":1}", at: path) }
        #expect(throws: TreeDataError.self) { try merge("{\"a/b\":{\"c\":1}}", at: path) }
        #expect(throws: TreeDataError.self) { try TreeUpdate.merge(at: TreePath(path), members: [("a/b/c", Node(1))]) }
    }

    @Test func aPriorityIsANumberOrAString() throws {
        for data in ["true", "{\"x\":1}", "[1]"] {
            #expect(throws: TreeDataError.self) { try merge("{\".priority\":\(data)}") }
            let node = try tree(data)
            #expect(throws: TreeDataError.self) { try TreeUpdate.merge(at: .root, members: [("a/.priority", node)]) }
        }
        let update = try merge("{\".priority\":{\".sv\":\"timestamp\"}}")
        #expect(update.changes[0].node.value == .deferred(.timestamp))
    }
}

extension String {
    fileprivate func replacingFirst(_ part: String, with other: String) -> String {
        guard let range = firstRange(of: part) else { return self }
        return String(self[..<range.lowerBound]) + other + String(self[range.upperBound...])
    }
}

@Suite struct ServerValueTests {
    @Test func deferredValuesAreComputedInTheirLocation() throws {
        let old = try tree(
            "{\"c\":{\"n\":{\".value\":5,\".priority\":2},\"d\":1.5,\"s\":\"x\",\"m\":9223372036854775807,\"o\":{\"a\":1}}}"
        )
        let node = try tree(
            """
            {"n":{".value":{".sv":{"increment":3}},".priority":{".sv":{"increment":1}}},"d":{".sv":{"increment":1}},
            "s":{".sv":{"increment":2}},"m":{".sv":{"increment":1}},"o":{".sv":{"increment":7}},"new":{".sv":{"increment":0.5}},
            "t":{"u":{".sv":"timestamp"}},"k":true,".priority":{".sv":"timestamp"}}
            """)
        let resolved = try node.resolved(nowMilliseconds: 1000, old: old, at: "c")
        #expect(resolved.node(at: "n") == Node(.integer(8), priority: .integer(3)))
        #expect(resolved.node(at: "d").value == .double(2.5))
        #expect(resolved.node(at: "s").value == .integer(2))
        #expect(resolved.node(at: "m").value == .double(0x1p63))
        #expect(resolved.node(at: "o").value == .integer(7))
        #expect(resolved.node(at: "new").value == .double(0.5))
        #expect(resolved.node(at: "t/u").value == .integer(1000))
        #expect(resolved.node(at: "k").value == true)
        #expect(resolved.priority == .integer(1000))
        #expect(!resolved.hasDeferred && node.hasDeferred)
        #expect(resolved.childCount == node.childCount)
    }

    @Test func sumsOfIntegersAreIntegersWhileTheyFit() {
        let cases: [(ServerValue, Scalar?, Scalar)] = [
            (.increment(1), .integer(41), .integer(42)), (.increment(1), nil, .integer(1)),
            (.increment(1), .double(1.5), .double(2.5)), (.incrementDouble(0.5), .integer(1), .double(1.5)),
            // As it is read again.
            (.incrementDouble(0.5), .double(1.5), .integer(2)), (.increment(1), .double(0x1p60), .double(0x1p60)),
            (.increment(-1), .integer(.min), .double(-0x1p63)), (.increment(1), .bool(true), .integer(1)),
            (.incrementDouble(-1), .double(1), .integer(0)),
            (
                .incrementDouble(.greatestFiniteMagnitude), .double(.greatestFiniteMagnitude),
                .double(.greatestFiniteMagnitude)
            ),
            (.timestamp, .integer(3), .integer(99)),
        ]
        for (value, old, result) in cases { #expect(value.resolved(nowMilliseconds: 99, old: old) == result) }
    }

    @Test func aPrioritysChangeIsComputedToo() throws {
        let old = try tree("{\"a\":{\".value\":1,\".priority\":4}}")
        let change = TreeChange(path: "a/.priority", node: Node(.deferred(.increment(1))))
        #expect(try change.resolved(nowMilliseconds: 0, old: old).node.value == .integer(5))
        let value = TreeChange(path: "a", node: Node(.deferred(.increment(1))))
        #expect(try value.resolved(nowMilliseconds: 0, old: old).node.value == .integer(2))
    }
}
