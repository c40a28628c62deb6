import HearthTree
import Testing

@testable import HearthServer

@Suite struct DisconnectWritesTests {
    private func show(_ writes: DisconnectWrites) -> [String: Node] {
        Dictionary(uniqueKeysWithValues: writes.changes.map { ($0.path.text, $0.node) })
    }

    @Test func laterPutsReplaceOrAreFoldedIn() {
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

    /// A peer's test: sets `{bar, baz}`, merges `{bam}`, removes `baz`.
    @Test func setMergeAndRemoveAreOneChange() {
        var writes = DisconnectWrites()
        writes.put("foo", inner(["bar": "a", "baz": "b"]))
        writes.merge([TreeChange(path: "foo/bam", node: "c")])
        writes.put("foo/baz", .empty)
        #expect(show(writes) == ["foo": inner(["bar": "a", "bam": "c"])])
    }

    @Test func cancelTakesOutAPlaceAndWhatIsBelow() {
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

    /// On an empty tree the kept writes do what the wishes do one after the other.
    @Test func keptWritesDoWhatTheWishesDo() {
        for seed in 1...300 as ClosedRange<UInt64> {
            var random = Seeded(seed)
            var writes = DisconnectWrites()
            var model = Node.empty
            for _ in 0..<8 {
                let path = random.path(upTo: 3)
                if path.isRoot { continue }
                let node = random.next(4) == 0 ? Node.empty : random.node(depth: 2)
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

    @Test func theJournalsTextComesBack() throws {
        var writes = DisconnectWrites()
        writes.put("a/é", Node(.deferred(.timestamp), priority: .deferred(.timestamp)))
        writes.put("b", inner(["c": Node(.deferred(.increment(-3)))], priority: "x"))
        writes.put("d/.priority", 5)
        let auth = JSONValue.object([("uid", "u"), ("token", .object([("admin", true)]))])
        for identity in [
            RealtimeIdentity.nobody, .client(auth: auth, expiresAt: 5),
            .administrator(AdministratorScope(project: "p", isReadOnly: true)),
        ] {
            let record = DisconnectRecord(identity, writes)
            let read = try DisconnectRecord(parsing: record.text)
            #expect(read.changes == record.changes)
            switch (identity, read.identity) {
            case (.client(let one, _), .client(let other, nil)): #expect(one == other)
            case (.administrator(let one), .administrator(let other)): #expect(one == other)
            default: Issue.record("\(identity) came back as \(read.identity)")
            }
        }
        #expect(throws: (any Error).self) { try DisconnectRecord(parsing: Array("{}".utf8)) }
    }
}
