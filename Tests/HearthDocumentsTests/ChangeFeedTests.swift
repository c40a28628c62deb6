import HearthConcurrency
import HearthEngine
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthDocuments

struct ChangeFeedTests {
    /// A commit of large documents, of which each step reads few, with a record that has no change: the document neither was
    /// before nor is after.
    @Test func recordsWithoutAChangeHoldUpNoReader() throws {
        let store = MemoryStore()
        let database = try Database(name: DatabaseName(project: "p"), store: store)
        defer { withExtendedLifetime(database) {} }
        func resource(_ path: [String]) -> ResourceName {
            ResourceName(database: database.name, path: ResourcePath(path))
        }
        let large = MapValue([MapValue.Field(name: "s", value: .string(String(repeating: "x", count: 9000)))])
        let writes = ["a", "d", "e"].map { id in
            Write(
                document: resource(["c", id]), operation: .update(fields: large, mask: nil), transforms: [],
                precondition: .none)
        }
        let outcome = Promise<Result<CommitOutcome, Status>>()
        database.commit(writes, requester: .server, author: []) { outcome.give($0) }
        let version = try outcome.wait().get().commitTime.microseconds
        try store.write { transaction throws(Status) in
            for id in ["b", "c", "f"] {
                let key = DocumentKey.encode(ResourcePath(["c", id]))
                var value: [UInt8] = []
                Feed.appendValue(previousVersion: 0, nil, to: &value)
                try transaction.put(.feed, Feed.key(version, key), value)
                try transaction.put(.meta, Feed.tombstoneKey(key), Database.encode(version))
            }
        }
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var feed = ChangeFeed(after: 0, incarnation: 0)
        var found: [(id: String?, isLast: Bool)] = []
        var steps = 0
        while try !feed.read(
            in: snapshot, .everything, oldest: 0, FeedBudget(records: 8, steps: nil) { () throws(Status) in },
            { change throws(Status) in
                found.append((DocumentKey.decode(change.key)?.segments.last, change.isLast))
                return true
            })
        {
            steps += 1
            if steps > 20 { break }
        }
        #expect(steps > 1 && steps <= 20)
        #expect(found.map(\.id) == ["a", "d", "e"] && found.map(\.isLast) == [false, false, true])
    }
}
