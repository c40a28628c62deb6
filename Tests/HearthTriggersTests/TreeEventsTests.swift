import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTreeStorage
@testable import HearthTriggers

/// Which locations have events after a write, and what of them is stored.
struct TreeEventsTests {
    private struct Seen: Hashable {
        let trigger: String
        let path: String
        let data: String
    }

    // MARK: Against a model

    private static let keys = ["a", "b", "c", "ab", "1", "02", "\u{e9}"]

    private func key(_ random: inout SeededGenerator) -> TreeKey {
        TreeKey(random.chance(75) ? random.pick(["a", "b", "c"]) : random.pick(Self.keys))
    }

    private func path(_ most: Int, _ random: inout SeededGenerator) -> TreePath {
        TreePath(keys: (0..<random.below(most + 1)).map { _ in key(&random) })
    }

    private func node(_ depth: Int, _ random: inout SeededGenerator) -> Node {
        let priority: Scalar? = random.chance(10) ? .integer(Int64(random.below(2))) : nil
        if depth == 0 || random.chance(40) {
            return random.chance(10) ? .empty : Node(.integer(Int64(random.below(3))), priority: priority)
        }
        return Node(
            children: (0..<random.below(4)).map { _ in (key(&random), node(depth - 1, &random)) }, priority: priority)
    }

    private func change(_ random: inout SeededGenerator) -> TreeChange {
        let path = path(4, &random)
        switch random.below(10) {
        case 0: return TreeChange(path: path.child(.priority), node: Node(.integer(Int64(random.below(2)))))
        case 1...2: return TreeChange(path: path, node: .empty)
        case 3: return TreeChange(path: path, node: Node(.deferred(.increment(Int64(random.below(2))))))
        default: return TreeChange(path: path, node: node(random.below(4), &random))
        }
    }

    private func pattern(_ random: inout SeededGenerator) -> String {
        (0...random.below(4)).map { index in
            switch random.below(6) {
            case 0...1: "{k\(index)}"
            case 2: "*"
            case 3: "{k\(index)=a*}"
            case 4: "*b"
            default: random.pick(Self.keys)
            }
        }.joined(separator: "/")
    }

    private static let types = [
        "google.firebase.database.ref.v1.written", "google.firebase.database.ref.v1.created",
        "google.firebase.database.ref.v1.updated", "google.firebase.database.ref.v1.deleted",
        "providers/google.firebase.database/eventTypes/ref.write",
    ]

    /// All locations of both trees, one by one.
    private func expected(_ definitions: [TriggerDefinition], _ before: Node, _ after: Node) -> Set<Seen> {
        var expected: Set<Seen> = []
        func visit(_ path: TreePath, _ before: Node, _ after: Node) {
            let event = TreeEvent(
                namespace: "ns", path: path, time: Timestamp(microseconds: 0), before: before, after: after,
                author: .system)
            if let event, !path.isRoot {
                for definition in definitions
                where definition.type.wants(event.kind) && definition.pattern.matches(EventPath(path.string)) {
                    var data: [UInt8] = []
                    event.appendData(to: &data)
                    expected.insert(
                        Seen(
                            trigger: definition.name, path: path.string, data: String(decoding: data, as: UTF8.self)))
                }
            }
            for key in Set(before.children.map(\.key)).union(after.children.map(\.key)) {
                visit(path.child(key), before.child(key), after.child(key))
            }
        }
        visit(.root, before, after)
        return expected
    }

    private func seen(_ definitions: [TriggerDefinition], _ version: Int64, _ tree: EventTree) throws -> [Seen] {
        try tree.read { view in
            var seen: [Seen] = []
            for definition in definitions {
                guard let queue = tree.events.ledger.queue(of: definition.id) else { continue }
                for event in try queue.events(after: nil, countMax: .max, in: view.records)
                where event.version == version {
                    guard case .data(let data) = try TreeEventRecords.record(of: event, in: view.records).record.content
                    else { continue }
                    seen.append(
                        Seen(
                            trigger: definition.name, path: String(decoding: event.key, as: UTF8.self),
                            data: String(decoding: data, as: UTF8.self)))
                }
            }
            return seen
        }
    }

    /// Writes of all kinds: small ones, those that are made in slices, and wide updates.
    @Test(arguments: [UInt64](1...12)) func eventsAreTheLocationsWhoseValuesDiffer(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var options = TreeWriterOptions()
        if seed % 3 == 0 {
            options.replacementNodesMin = 3
            options.slices.recordsMax = 2
            if seed % 2 == 0 { options.replacementLocationsMax = 1 }
        }
        let definitions = try (0..<8).map { number in
            try treeDefinition("t\(number)", pattern(&random), random.pick(Self.types))
        }
        let tree = try EventTree(definitions, options: options)
        defer { tree.database.close() }
        var present = Node.empty
        var counts = 0
        for number in 0..<120 {
            let changes = (0..<(random.chance(60) ? 1 : 2 + random.below(4))).map { _ in change(&random) }
            let before = present
            let version: Int64
            do {
                version = try tree.write(changes).version
            } catch {
                continue
            }
            present = try tree.read { try $0.node(at: .root) }
            let seen = try seen(definitions, version, tree)
            let expected = expected(definitions, before, present)
            #expect(Set(seen) == expected, "seed \(seed), write \(number): \(changes)")
            #expect(seen.count == expected.count)
            counts += expected.count
        }
        #expect(counts > 20)
        for definition in definitions {
            #expect(tree.events.pending(definition.id) == (try counted(definition.id, tree)))
        }
        // When all is settled, nothing is left.
        for definition in definitions {
            let source = tree.source(definition)
            while case let events = try source.events(after: nil, countMax: 50), !events.isEmpty {
                try tree.settle(source, events)
            }
            #expect(tree.events.pending(definition.id) == 0)
        }
        #expect(try tree.recordCount() == 0)
    }

    private func counted(_ trigger: TriggerID, _ tree: EventTree) throws -> Int {
        try tree.read { try tree.events.ledger.queue(of: trigger)?.count(in: $0.records) ?? 0 }
    }

    // MARK: Cases

    @Test func anEventIsAboveAtAndBelowWhatIsWritten() throws {
        let definitions = try [
            treeDefinition("above", "chats/{chat}"), treeDefinition("at", "chats/{chat}/messages"),
            treeDefinition("below", "chats/{chat}/messages/{message}/body"),
        ]
        let tree = try EventTree(definitions)
        defer { tree.database.close() }
        try tree.put("chats/r", "{\"name\":\"R\",\"messages\":{\"m\":{\"body\":\"old\"}}}")
        let commit = try tree.put("chats/r/messages", "{\"m\":{\"body\":\"new\"},\"n\":{\"body\":1}}")
        #expect(
            Set(try seen(definitions, commit.version, tree)) == [
                Seen(
                    trigger: "above", path: "chats/r",
                    data: "\"data\":{\"messages\":{\"m\":{\"body\":\"old\"}},\"name\":\"R\"},"
                        + "\"delta\":{\"messages\":{\"m\":{\"body\":\"new\"},\"n\":{\"body\":1}}}"),
                Seen(
                    trigger: "at", path: "chats/r/messages",
                    data: "\"data\":{\"m\":{\"body\":\"old\"}},"
                        + "\"delta\":{\"m\":{\"body\":\"new\"},\"n\":{\"body\":1}}"),
                Seen(
                    trigger: "below", path: "chats/r/messages/m/body", data: "\"data\":\"old\",\"delta\":\"new\""),
                Seen(trigger: "below", path: "chats/r/messages/n/body", data: "\"data\":null,\"delta\":1"),
            ])
    }

    @Test func onePatchIsOneChangeOfALocation() throws {
        let definition = try treeDefinition("t", "users/{uid}")
        let tree = try EventTree([definition])
        defer { tree.database.close() }
        let commit = try tree.write([
            TreeChange(path: "users/a/x", node: Node(.integer(1))),
            TreeChange(path: "users/a/y", node: Node(.integer(2))),
            TreeChange(path: "users/b/x", node: Node(.integer(3))),
            TreeChange(path: "other", node: Node(.integer(4))),
        ])
        #expect(
            Set(try seen([definition], commit.version, tree)) == [
                Seen(trigger: "t", path: "users/a", data: "\"data\":null,\"delta\":{\"x\":1,\"y\":2}"),
                Seen(trigger: "t", path: "users/b", data: "\"data\":null,\"delta\":{\"x\":3}"),
            ])
        #expect(tree.events.pending("t") == 2)
    }

    @Test func whatChangesNoValueHasNoEvent() throws {
        let tree = try EventTree([try treeDefinition("t", "users/{uid}")])
        defer { tree.database.close() }
        let node = "{\"x\":1,\".priority\":2}"
        try tree.put("users/a", node)
        try tree.put("users/a", node)
        try tree.put("users/a/x", "1")
        try tree.put("users/a", "{\"x\":{\".value\":1,\".priority\":7}}")
        try tree.write([TreeChange(path: "users/a/.priority", node: Node(.integer(9)))])
        try tree.put("users/b", "null")
        // Below a leaf there is nothing to delete.
        try tree.put("users/a/x/y", "null")
        try tree.put("elsewhere/a", "1")
        try tree.put("users", "{\"a\":{\"x\":1}}")
        #expect(tree.events.pending("t") == 1)
    }

    @Test func serverValuesAreComputedBefore() throws {
        let definition = try treeDefinition("t", "n")
        let tree = try EventTree([definition])
        defer { tree.database.close() }
        try tree.put("n", "1")
        let commit = try tree.write([TreeChange(path: "n", node: Node(.deferred(.increment(4))))])
        #expect(try seen([definition], commit.version, tree).map(\.data) == ["\"data\":1,\"delta\":5"])
        let later = try tree.write([TreeChange(path: "n", node: Node(.deferred(.timestamp)))], now: 77)
        #expect(try seen([definition], later.version, tree).map(\.data) == ["\"data\":5,\"delta\":77"])
    }

    // MARK: What is stored

    @Test func statesAreStoredOnceForAllTriggers() throws {
        let definitions = try (0..<4).map { try treeDefinition("t\($0)", "big/{id}") }
        let tree = try EventTree(definitions)
        defer { tree.database.close() }
        let author = EventAuthor.user(id: "u", provider: "custom", claims: String(repeating: "x", count: 500))
        try tree.write(
            (0..<20).map {
                TreeChange(path: TreePath("big/\($0)"), node: Node(.string(String(repeating: "y", count: 1000))))
            }, by: author)
        let bytes = try tree.read { view in
            let cursor = try view.records.scan(.meta, KeyRange(lower: [], upper: nil), reverse: false, values: true)
            defer { cursor.close() }
            var bytes = 0
            while try cursor.next() { bytes += cursor.key.count + cursor.value.count }
            return bytes
        }
        #expect(bytes < 20 * 1000 + 20 * 4 * 100)
        // The states stay until the last trigger is done.
        let first = try #require(try tree.source(definitions[0]).events(after: nil, countMax: 1).first)
        let event = Delivery.Event(version: first.version, key: Array("big/7".utf8))
        for (index, definition) in definitions.enumerated() {
            let source = tree.source(definition)
            #expect(try source.request(for: event) != nil)
            try tree.settle(source, [event, event])
            // What isn't there any more doesn't count.
            try tree.settle(source, [event])
            #expect(try source.request(for: event) == nil)
            #expect(tree.events.pending(definition.id) == 19)
            let isStored = try tree.read { view in
                try view.records.get(.meta, Array("s".utf8) + TreeMeta.encode(event.version) + event.key) != nil
            }
            #expect(isStored == (index < 3))
        }
        for definition in definitions {
            let source = tree.source(definition)
            try tree.settle(source, try source.events(after: nil, countMax: 100))
        }
        #expect(try tree.recordCount() == 0)
    }

    /// The number of queues that refer to a record, in a damaged file: the events are settled all the same.
    @Test(arguments: [[], [1], [0x80, 0, 0, 0, 0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 0]])
    func aDamagedNumberOfReferences(_ bytes: [UInt8]) throws {
        let definitions = try (0..<2).map { try treeDefinition("t\($0)", "a/{id}") }
        let store = MemoryStore()
        let tree = try EventTree(definitions, store: store)
        defer { tree.database.close() }
        try tree.write([TreeChange(path: "a/b", node: Node(1))])
        let event = try #require(try tree.source(definitions[0]).events(after: nil, countMax: 1).first)
        let key = Array("r".utf8) + TreeMeta.encode(event.version) + event.key
        try store.write { transaction throws(Status) in try transaction.put(.meta, key, bytes) }
        for definition in definitions { try tree.settle(tree.source(definition), [event]) }
        #expect(try tree.recordCount() == 0)
    }

    @Test func recordsAreReadAsTheyWereWritten() throws {
        for record in [
            TreeEventRecord(kind: .created, author: .own([]), content: .data([])),
            TreeEventRecord(kind: .updated, author: .own([1, 2, 3]), content: .data([4, 5])),
            TreeEventRecord(kind: .deleted, author: .ofCommit, content: .fault("Too large.")),
        ] {
            #expect(try TreeEventRecord(record.bytes) == record)
        }
        let record = TreeEventRecord(kind: .updated, author: .own([1, 2, 3]), content: .data([]))
        for count in 0..<record.bytes.count {
            #expect(throws: Status.self) { try TreeEventRecord(Array(record.bytes.prefix(count))) }
        }
        #expect(throws: Status.self) { try TreeEventRecord([3, 0, 0]) }
        #expect(throws: Status.self) { try TreeEventRecord([1, 3, 0]) }
    }

    // MARK: Bounds

    @Test func whatIsTooLargeCanNeverBeSent() throws {
        var bounds = TreeEvents.Bounds()
        bounds.eventBytesMax = 200
        bounds.storedBytesMax = 2000
        bounds.commitBytesMax = 1000
        let definition = try treeDefinition("t", "a/{id}")
        let tree = try EventTree([definition], bounds: bounds)
        defer { tree.database.close() }
        let source = tree.source(definition)
        func fault() throws -> Status? {
            let event = try #require(try source.events(after: nil, countMax: 1).first)
            defer { do { try tree.settle(source, [event]) } catch { Issue.record(error) } }
            do throws(Status) { _ = try source.request(for: event) } catch { return error }
            return nil
        }
        try tree.put("a/x", "\"\(String(repeating: "x", count: 170))\"")
        #expect(try fault() == nil)
        // Before and delta together.
        try tree.put("a/x", "\"\(String(repeating: "y", count: 170))\"")
        #expect(try fault()?.code == .resourceExhausted)
        // A value that is too large to be read.
        let members = (0..<100).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
        try tree.put("a/x", "{\(members)}")
        #expect(try fault()?.code == .resourceExhausted)
        try tree.put("a/x", "{\(members)}")
        try tree.put("a/x/k5", "5")
        #expect(tree.events.pending("t") == 0)
        try tree.put("a/x/k5", "6")
        #expect(try fault()?.code == .resourceExhausted)
        try tree.put("a/x", "null")
        #expect(try fault()?.code == .resourceExhausted)
        // All events of a write: 1000 bytes are six of them.
        try tree.write(
            (0..<10).map {
                TreeChange(path: TreePath("a/\($0)"), node: Node(.string(String(repeating: "z", count: 140))))
            })
        #expect(tree.events.pending("t") == 10)
        #expect(try (0..<10).map { _ in try fault() }.count { $0 == nil } == 6)
        #expect(try tree.recordCount() == 0)
    }

    /// The store fails at every operation of a write with events.
    @Test(arguments: 0..<30) func thereAreEventsExactlyOfWritesThatAreMade(operation: Int) throws {
        let store = FaultyStore()
        let definitions = try [treeDefinition("t", "a/{id}"), treeDefinition("u", "a/{id}/x")]
        let tree = try EventTree(definitions, store: store)
        defer { tree.database.close() }
        store.fail(at: operation)
        var made = 0
        for number in 0..<3 {
            do {
                try tree.put(TreePath("a/\(number)"), "{\"x\":1}")
                made += 1
            } catch {}
        }
        store.fail(at: nil)
        for definition in definitions {
            #expect(tree.events.pending(definition.id) == made)
            #expect(try counted(definition.id, tree) == made)
            #expect(try tree.source(definition).events(after: nil, countMax: 9).count == made)
        }
        // A recorder that is made anew reads the same.
        let view = try tree.database.view()
        defer { view.close() }
        let again = try TreeEvents(TreeEvents.Triggers(definitions), namespace: "ns", before: view) { _ in }
        #expect(definitions.allSatisfy { again.pending($0.id) == made })
    }

    // MARK: Cost

    /// What no pattern matches is neither read nor written.
    @Test func whatMatchesNothingCostsNoAccessToTheStore() throws {
        func operations(_ definitions: [TriggerDefinition]) throws -> Int {
            let store = FaultyStore()
            let tree = try EventTree(definitions, store: store)
            defer { tree.database.close() }
            store.fail(at: nil)
            for number in 0..<20 { try tree.put(TreePath("other/\(number)/x"), "{\"y\":1}") }
            return store.operations
        }
        let none = try operations([])
        let many = try (0..<500).map { try treeDefinition("t\($0)", "p\($0)/{id}") }
        #expect(try operations(many) == none)
        // A type that isn't wanted is found without reading values.
        let deleted = "google.firebase.database.ref.v1.deleted"
        #expect(try operations([treeDefinition("d", "other/{id}", deleted)]) < none + 20 * 8)
    }

    /// The whole tree at once, over a pattern that matches each child: each is read once.
    @Test func aWriteOfEverythingIsLinear() throws {
        func operations(_ count: Int) throws -> Int {
            let store = FaultyStore()
            let tree = try EventTree([try treeDefinition("t", "users/{uid}")], store: store)
            defer { tree.database.close() }
            func users(_ value: Int) -> Node {
                Node(
                    children: [
                        (
                            TreeKey("users"),
                            Node(children: (0..<count).map { (TreeKey("u\($0)"), Node(.integer(Int64(value)))) })
                        )
                    ])
            }
            try tree.write([TreeChange(path: .root, node: users(1))])
            store.fail(at: nil)
            try tree.write([TreeChange(path: .root, node: users(2))])
            #expect(tree.events.pending("t") == 2 * count)
            return store.operations
        }
        let (few, many) = (try operations(100), try operations(1000))
        #expect(many < few * 11)
    }

    /// Many patterns name keys that none of many locations has.
    @Test func keysThatPatternsNameCostNoMoreThanTheChildrenOfALocation() throws {
        func operations(_ count: Int) throws -> Int {
            let store = FaultyStore()
            let definitions = try (0..<count).map { try treeDefinition("t\($0)", "chats/{chat}/x\($0)") }
            let tree = try EventTree(definitions, store: store)
            defer { tree.database.close() }
            func chats(_ value: Int) -> Node {
                HearthTriggersTests.tree(
                    "{\"chats\":{" + (0..<50).map { "\"c\($0)\":{\"a\":\(value)}" }.joined(separator: ",") + "}}")
            }
            try tree.write([TreeChange(path: .root, node: chats(1))])
            store.fail(at: nil)
            try tree.write([TreeChange(path: .root, node: chats(2))])
            return store.operations
        }
        let (few, many) = (try operations(2), try operations(200))
        #expect(many < few * 2)
    }

    @Test(arguments: [1, 9]) func keysThatPatternsNameAreFoundAmongFewerAndMoreChildren(children: Int) throws {
        let definitions = try (0..<6).map { try treeDefinition("t\($0)", "{chat}/x\($0)") }
        let tree = try EventTree(definitions)
        defer { tree.database.close() }
        func chat(_ names: some Sequence<String>, _ value: Int) -> String {
            "{" + names.map { "\"\($0)\":\(value)" }.joined(separator: ",") + "}"
        }
        let others = (0..<children).map { "y\($0)" }
        let all = (0..<6).map { "x\($0)" }
        let first = HearthTriggersTests.tree(
            "{\"a\":\(chat(others + ["x1"], 1)),\"b\":\(chat(all, 1)),\"c\":\(chat(others, 1))}")
        let second = HearthTriggersTests.tree(
            "{\"a\":\(chat(others + ["x2"], 2)),\"c\":\(chat(all + others, 2)),\"d\":\(chat(["x5"], 2))}")
        for (before, after) in [(Node.empty, first), (first, second), (second, first)] {
            let version = try tree.write([TreeChange(path: .root, node: after)]).version
            #expect(Set(try seen(definitions, version, tree)) == expected(definitions, before, after))
        }
    }
}
