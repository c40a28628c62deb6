import HearthModel
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Testing

@testable import HearthHost
@testable import HearthRealtimeServer

@Suite struct DisconnectWritesTests {
    private func show(_ writes: DisconnectWrites) -> [String: Node] {
        Dictionary(uniqueKeysWithValues: writes.changes.map { ($0.path.string, $0.node) })
    }

    @Test func laterPutsReplaceOrAreMerged() {
        var writes = DisconnectWrites()
        writes.put("a/b", 1)
        writes.put("a/c", 2)
        #expect(show(writes) == ["a/b": 1, "a/c": 2])
        writes.put("a", inner(["x": 5]))
        #expect(show(writes) == ["a": inner(["x": 5])])
        writes.put("a/y/z", 6)
        #expect(show(writes) == ["a": inner(["x": 5, "y": inner(["z": 6])])])
        writes.put("a/x", .empty)
        #expect(show(writes) == ["a": inner(["y": inner(["z": 6])])])
        writes.put("a/.priority", 3)
        #expect(show(writes) == ["a": inner(["y": inner(["z": 6])], priority: 3)])
    }

    /// A test of a public SDK: sets `{bar, baz}`, merges `{bam}`, removes `baz`.
    @Test func setMergeAndRemoveAreOneChange() {
        var writes = DisconnectWrites()
        writes.put("foo", inner(["bar": "a", "baz": "b"]))
        writes.merge([TreeChange(path: "foo/bam", node: "c")])
        writes.put("foo/baz", .empty)
        #expect(show(writes) == ["foo": inner(["bar": "a", "bam": "c"])])
    }

    @Test func cancelRemovesALocationAndItsSubtree() {
        var writes = DisconnectWrites()
        writes.put("a/b/c", 1)
        writes.put("a/d", 2)
        writes.cancel("a/b")
        #expect(show(writes) == ["a/d": 2])
        writes.cancel(.root)
        #expect(writes.isEmpty)
        writes.put("a", inner(["b": inner(["c": 1, "e": 2]), "d": 3]))
        writes.cancel("a/b/c")
        #expect(show(writes) == ["a/b/e": 2, "a/d": 3])
        writes.put("z", .empty)
        writes.cancel("z/y")
        #expect(show(writes) == ["a/b/e": 2, "a/d": 3, "z": .empty])
    }

    /// On an empty tree the stored writes have the same result as the requested writes one after the other.
    @Test func storedWritesEqualTheRequestedWrites() {
        for seed in 1...300 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            var writes = DisconnectWrites()
            var model = Node.empty
            for _ in 0..<8 {
                let path = random.path(upTo: 3)
                if path.isRoot { continue }
                let node = random.below(4) == 0 ? Node.empty : random.node(depth: 2)
                writes.put(path, node)
                model = model.setting(path, to: node)
            }
            let changes = writes.changes
            for (index, change) in changes.enumerated() {
                for other in changes[(index + 1)...] {
                    #expect(!change.path.contains(other.path) && !other.path.contains(change.path), "seed \(seed)")
                }
            }
            var result = Node.empty
            for change in changes { result = result.applying(change) }
            #expect(result == model, "seed \(seed)")
        }
    }

    @Test func theJournalIsReadBack() throws {
        var writes = DisconnectWrites()
        writes.put("a/é", Node(.deferred(.timestamp), priority: .deferred(.timestamp)))
        writes.put("b", inner(["c": Node(.deferred(.increment(-3)))], priority: "x"))
        writes.put("d/.priority", 5)
        let auth = JSONValue.object([("uid", "u"), ("token", .object([("admin", true)]))])
        for identity in [
            RealtimeIdentity.nobody, .client(auth: auth, end: nil),
            .administrator(AdministratorScope(project: "p", isReadOnly: true)),
            .impersonation(auth: auth, by: AdministratorScope(project: "p", isReadOnly: true)),
            .impersonation(auth: nil, by: AdministratorScope()),
        ] {
            let locations = writes.changes.map { change in
                (entry: DisconnectRecord.entry(of: change.path), record: DisconnectRecord.string(of: change.node))
            }
            let own = (entry: DisconnectRecord.identityEntry, record: DisconnectRecord.string(of: identity))
            let read = try DisconnectRecord(JournalSession(session: "s", records: locations + [own]))
            #expect(read.changes == writes.changes)
            switch (identity, read.identity) {
            case (.client(let one, _), .client(let other, nil)): #expect(one == other)
            case (.administrator(let one), .administrator(let other)): #expect(one == other)
            case (.impersonation(let one, let scope), .impersonation(let other, let otherScope)):
                #expect(one == other && scope == otherScope)
            default: Issue.record("\(identity) came back as \(read.identity)")
            }
        }
        for records in [[], [("identity", "{}")], [("x", "1")], [("identity", #"{"auth":null}"#), ("/a", "nonsense")]] {
            let kept = JournalSession(session: "s", records: records.map { ($0.0, Array($0.1.utf8)) })
            #expect(throws: (any Error).self) { try DisconnectRecord(kept) }
        }
    }

    /// A receiver that applies each set of changes has all disconnect writes.
    @Test func changesLeadFromOneStateToTheNext() throws {
        for seed in 1...300 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            var writes = DisconnectWrites()
            var kept: [TreePath: Node] = [:]
            for _ in 0..<30 {
                change(&writes, &random)
                if random.below(3) > 0 { continue }
                for (path, node) in writes.takeChanges() { kept[path] = node }
                let parts = writes.parts
                #expect(kept.count == parts.count && parts.allSatisfy { kept[$0.path] == $0.node }, "seed \(seed)")
                #expect(writes.partCount == parts.count && writes.isEmpty == parts.isEmpty, "seed \(seed)")
            }
        }
    }

    private func change(_ writes: inout DisconnectWrites, _ random: inout SeededGenerator) {
        let path = random.path(upTo: 3)
        switch random.below(5) {
        case 0: writes.cancel(path)
        case 1: writes.merge((0..<3).map { _ in TreeChange(path: random.path(upTo: 3), node: random.node(depth: 1)) })
        default: writes.put(path, random.node(depth: 2))
        }
    }

    @Test func writesAboveTheLimitChangeNothing() {
        let many = (0...Limits.realtimeDisconnectWritesMax).map { number in
            TreeChange(path: TreePath(keys: ["t", TreeKey(number)]), node: 1)
        }
        for seed in TestRun.numbers(12) {
            var random = SeededGenerator(seed: seed)
            var writes = DisconnectWrites()
            for _ in 0..<20 {
                change(&writes, &random)
                _ = writes.takeChanges()
                let before = (show(writes), writes.sizeBytes, writes.partCount)
                let isKept = writes.attempt { writes in
                    for _ in 0..<5 { change(&writes, &random) }
                    writes.cancel("t")
                    writes.merge(many)
                }
                if isKept != nil { continue }
                let after = (show(writes), writes.sizeBytes, writes.partCount)
                #expect(before.0 == after.0 && before.1 == after.1 && before.2 == after.2, "seed \(seed)")
                // The journal receives only changes.
                #expect(
                    writes.takeChanges().allSatisfy { change in
                        writes.parts.first { $0.path == change.path }?.node == change.node
                    }, "seed \(seed)")
            }
        }
    }

    /// Counted by the bytes in the journal: the cost of an entry depends on its own size, not on the entry above it.
    @Test func nestedWritesCostTheirOwnSize() {
        func journalBytes(_ count: Int) -> Int {
            var writes = DisconnectWrites()
            writes.put("a", inner(["whole": Node(.string(String(repeating: "x", count: 100_000)))]))
            var bytes = 0
            _ = writes.takeChanges()
            for number in 0..<count {
                #expect(writes.attempt { $0.put(TreePath(keys: ["a", TreeKey(number)]), 1) } != nil)
                for change in writes.takeChanges() {
                    bytes += change.node.map { DisconnectRecord.string(of: $0).count } ?? 0
                }
            }
            return bytes
        }
        #expect(journalBytes(90) == 10 * journalBytes(9))
        #expect(journalBytes(900) == 100 * journalBytes(9))
    }

    /// Each write is recorded individually, however many there are; undoing one removes nothing else.
    @Test(arguments: [9, 90, 900]) func siblingWritesCostTheirOwnSize(count: Int) {
        var writes = DisconnectWrites()
        for number in 0..<count {
            #expect(writes.attempt { $0.put(TreePath(keys: [TreeKey(number)]), 1) } != nil)
            #expect(writes.takeChanges().map(\.path) == [TreePath(keys: [TreeKey(number)])])
        }
        #expect(writes.attemptSteps == count)
        #expect(writes.attempt(mayTake: { _ in false }) { $0.put(TreePath(keys: ["x"]), 1) } == nil)
        // Changed and changed back.
        #expect(writes.attemptSteps == count + 2)
        #expect(writes.partCount == count)
    }

    /// Many writes below one location are one write in the end, however many there are.
    @Test func entriesAboveTheLimitAreMerged() {
        var writes = DisconnectWrites()
        writes.put("a", inner(["x": 1]))
        let count = Limits.realtimeDisconnectWritesMax * 3
        for number in 0..<count {
            #expect(writes.attempt { $0.put(TreePath(keys: ["a", TreeKey(number)]), 1) } != nil)
        }
        #expect(writes.partCount <= Limits.realtimeDisconnectWritesMax + 1)
        #expect(writes.changes.count == 1 && writes.changes[0].node.childCount == count + 1)
    }

    @Test func journalEntriesAreMergedInTheirOrder() throws {
        var writes = DisconnectWrites()
        writes.put("a", inner(["x": 1, "y": inner(["z": 2])], priority: 4))
        writes.put("a/y", inner(["w": 3]))
        writes.put("a/y/v", 5)
        writes.put("a/x", .empty)
        writes.put("a/.priority", 6)
        writes.put("b", 1)
        let records = writes.parts.map {
            (entry: DisconnectRecord.entry(of: $0.path), record: DisconnectRecord.string(of: $0.node))
        }
        #expect(records.count == 6)
        let own = (entry: DisconnectRecord.identityEntry, record: DisconnectRecord.string(of: .nobody))
        let read = try DisconnectRecord(JournalSession(session: "s", records: records.shuffled() + [own]))
        #expect(read.changes == writes.changes)
        #expect(show(writes) == ["a": inner(["y": inner(["v": 5, "w": 3])], priority: 6), "b": 1])
    }
}
