import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Receivers are notified of the commits that may concern them, in order, and of no others.
struct ChangeHubTests {
    private final class Receiver: ChangeReceiver {
        let events = Mutex<[String]>([])

        func receive(_ event: ChangeEvent) {
            let string =
                switch event {
                case .committed(let set, _):
                    set.changes.compactMap { DocumentKey.decode($0.key)?.string }.sorted().joined(separator: " ")
                case .cleared: "cleared"
                case .closed: "closed"
                }
            events.withLock { $0.append(string) }
        }

        func take() -> [String] {
            events.withLock { events in
                defer { events = [] }
                return events
            }
        }
    }

    private func scope(_ path: String, group: Bool = false) throws -> WatchScope {
        let parts = path.split(separator: "/").map(String.init)
        let parent = ResourceName(database: testDatabaseName, path: ResourcePath(Array(parts.dropLast())))
        let scope: Query.Scope = group ? .collectionGroup(parts[parts.count - 1]) : .collection(parts[parts.count - 1])
        return LiveQuery(try NormalizedQuery(Query(parent: parent, scope: scope))).scope
    }

    @Test func commitsAreDeliveredToTheReceiversThatTheyConcern() throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        let receivers = (0..<5).map { _ in Receiver() }
        let scopes: [[WatchScope]] = [
            [try scope("c")], [try scope("c/a/d")], [try scope("d", group: true)],
            [.document(DocumentKey.encode(resource("c/a").path)), try scope("c")], [.everything],
        ]
        for (receiver, scopes) in zip(receivers, scopes) { #expect(database.changes.add(scopes, for: receiver)) }
        func received() -> [[String]] { receivers.map { $0.take() } }

        try database.commit([.set("c/a", map())])
        #expect(received() == [["c/a"], [], [], ["c/a"], ["c/a"]])
        try database.commit([.set("c/a/d/x", map()), .set("e/y", map())])
        #expect(received() == [[], ["c/a/d/x e/y"], ["c/a/d/x e/y"], [], ["c/a/d/x e/y"]])
        try database.commit([.set("d/x", map())])
        #expect(received() == [[], [], ["d/x"], [], ["d/x"]])
        // A commit without effect is not a change.
        try database.commit([.set("d/x", map()), .delete("c/none")])
        #expect(received() == [[], [], [], [], []])

        // Two uses of one scope end one by one.
        #expect(database.changes.add(scopes[0], for: receivers[0]))
        database.changes.remove(scopes[0], for: receivers[0])
        try database.commit([.set("c/b", map())])
        #expect(received() == [["c/b"], [], [], ["c/b"], ["c/b"]])
        database.changes.remove(scopes[0], for: receivers[0])
        database.changes.remove(scopes[4], for: receivers[4])
        let version = try database.commit([.delete("c/b")]).commitTime.microseconds
        #expect(received() == [[], [], [], ["c/b"], []])
        database.changes.withVersion { #expect($0 == version) }

        try database.clear()
        #expect(received() == [[], ["cleared"], ["cleared"], ["cleared"], []])
        database.close()
        #expect(received() == [[], ["closed"], ["closed"], ["closed"], []])
        #expect(!database.changes.add(scopes[0], for: receivers[0]))
    }
}
