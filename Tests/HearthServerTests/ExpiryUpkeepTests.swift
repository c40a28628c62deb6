import HearthDocuments
import HearthEngine
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthFirestoreServer
@testable import HearthHost
@testable import HearthServer

/// The upkeep deletes what expires, in databases that are open and in those that are not.
@Suite struct ExpiryUpkeepTests {
    private let clock = StoppedClock()
    private let provider = MemoryStoreProvider()
    private let name = DatabaseName(project: "p")

    private func registry() -> DatabaseRegistry { DatabaseRegistry(provider: provider, clock: clock) }

    private func prepare(_ database: Database, count: Int, seconds: Double) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let policy = FieldOverride(
                collectionID: "c", path: FieldPath("until"), indexes: FieldOverride.automaticIndexes,
                timeToLive: .init())
            database.setCatalog(definitions: [], overrides: [policy]) { continuation.resume(with: $0.mapError { $0 }) }
        }
        let time = Timestamp(microseconds: clock.now().microseconds + Int64(seconds * 1e6))
        for begin in stride(from: 0, to: count, by: 500) {
            let writes = (begin..<min(count, begin + 500)).map { number in
                Write(
                    document: ResourceName(database: name, path: ResourcePath(["c", "\(number)"])),
                    operation: .update(fields: MapValue([.init(name: "until", value: .timestamp(time))]), mask: nil))
            }
            _ = try await withCheckedThrowingContinuation { continuation in
                database.commit(writes) { continuation.resume(with: $0) }
            }
        }
    }

    private func count(_ database: Database) throws -> Int {
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        return try snapshot.count(.documents, KeyRange(lower: [], upper: nil), limit: .max)
    }

    private func metrics(_ upkeep: ExpiryUpkeep) -> String {
        var metrics = MetricsWriter()
        upkeep.write(to: &metrics)
        return String(decoding: metrics.writer.bytes, as: UTF8.self)
    }

    @Test func deletesInStepsUntilNothingIsLeft() async throws {
        let (registry, threads) = (registry(), LifecycleThreads())
        defer {
            threads.stop()
            registry.close()
        }
        let database = try registry.database(name)
        try await prepare(database, count: 1700, seconds: 10)
        let upkeep = ExpiryUpkeep(registry: registry, threads: threads, clock: clock, log: Log())
        upkeep.tick(0)
        await until { (try? count(database)) == 1700 }
        clock.advance(seconds: 11)
        await until {
            upkeep.tick(0)
            return (try? count(database)) == 0
        }
        await until { metrics(upkeep).contains("\nhearth_ttl_deletes_total 1700\n") }
        #expect(try IntegrityCheck.run(database).isSound)
        upkeep.stop()
    }

    /// What an earlier run of the process has left, and what expires while the database is closed.
    @Test func opensDatabasesForWhatExpires() async throws {
        let first = registry()
        try await prepare(try first.database(name), count: 3, seconds: 10)
        first.close()
        let threads = LifecycleThreads()
        let openStores = OpenStores(threads: threads)
        let registry = DatabaseRegistry(provider: provider, threads: threads, openStores: openStores, clock: clock)
        defer {
            registry.close()
            threads.stop()
        }
        let upkeep = ExpiryUpkeep(registry: registry, threads: threads, clock: clock, log: Log())
        upkeep.start()
        await until { registry.opened(name) != nil }
        upkeep.tick(0)
        await until { upkeep.nextExpiry(of: name) != nil }
        await until {
            openStores.closeUnused(existing: true)
            return registry.openDatabases.isEmpty
        }
        clock.advance(seconds: 11)
        await until {
            upkeep.tick(0)
            return (try? registry.database(name)).flatMap { try? count($0) } == 0
        }
        upkeep.stop()
    }
}
