import HearthDocuments
import HearthEngine
import HearthHost
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthServer

/// The upkeep deletes all that is old, in as many steps as it takes.
@Suite struct OnceUpkeepTests {
    private let clock = StoppedClock()

    private func commit(_ database: Database, _ paths: [String], once: OnceID? = nil) async throws {
        let writes = paths.map {
            Write(
                document: ResourceName(
                    database: database.name, path: ResourcePath($0.split(separator: "/").map(String.init))),
                operation: .update(fields: MapValue(), mask: nil))
        }
        _ = try await withCheckedThrowingContinuation { continuation in
            database.commit(writes, requester: .server, once: once) { continuation.resume(with: $0) }
        }
    }

    private func count(_ database: Database, _ collection: String) throws -> Int {
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        let key = DocumentKey.encode(ResourcePath([collection, "x"]))
        let prefix = try #require(DocumentKey.collectionPrefix(of: key))
        return try snapshot.count(.documents, KeyRange(prefix: prefix), limit: .max)
    }

    private func metaCount(_ database: Database, _ prefix: String) throws -> Int {
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        return try snapshot.count(.meta, KeyRange(prefix: Array(prefix.utf8)), limit: .max)
    }

    @Test func deletesInSteps() async throws {
        let database = try Database(name: DatabaseName(project: "p"), store: MemoryStore(), clock: clock)
        let threads = LifecycleThreads()
        defer { threads.stop() }
        let upkeep = OnceUpkeep(collection: "done", threads: threads)
        for number in 0..<1300 {
            try await commit(
                database, ["done/\(number)", "_once/\(number)"], once: try OnceID("\(number)", called: ""))
        }
        upkeep.run(database)
        // Each has a record, and so has the collection.
        await until { (try? metaCount(database, "l")) == 1301 }
        clock.advance(seconds: Double(Limits.onceSeconds + 1))
        try await commit(database, ["done/young"], once: try OnceID("young", called: ""))
        // A step of the first run may still be under way: the upkeep comes again.
        await until {
            upkeep.run(database)
            return (try? count(database, "done")) == 1 && (try? metaCount(database, "o")) == 2
        }
        #expect(try count(database, "done") == 1 && metaCount(database, "o") == 2 && metaCount(database, "l") == 2)
        #expect(try count(database, "_once") == 1300)
        #expect(try IntegrityCheck.run(database).isSound)
        database.close()
    }
}
