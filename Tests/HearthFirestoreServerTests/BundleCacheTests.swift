@testable import HearthConcurrency
@testable import HearthDocuments
import HearthBundle
import HearthModel
import HearthEngine
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

/// When a bundle is built again, and when the cached one is sent.
@Suite struct BundleCacheTests {
    private final class Bench: Sendable {
        let clock = StoppedClock()
        let registry = DatabaseRegistry(provider: MemoryStoreProvider())
        let cache: BundleCache

        init() {
            cache = BundleCache(folder: SpillFile.temporaryFolder, requireIndexes: false, clock: clock)
        }

        deinit {
            cache.stop()
            registry.close()
        }

        var database: Database {
            get throws { try registry.database(DatabaseName(project: "p")) }
        }

        func definition(_ more: String = "", id: String = "x") throws -> BundleDefinition {
            let string = #"{"queries":{"all":{"collection":"c"}}\#(more)}"#
            return try BundleDefinition(
                json: Array(string.utf8), file: "test", name: id, database: DatabaseName(project: "p"))
        }

        func bundle(_ definition: BundleDefinition) async throws -> BundleCache.Answer {
            let database = try database
            return try await withCheckedContinuation { continuation in
                cache.bundle(definition, database, for: .server) { continuation.resume(returning: $0) }
            }.get()
        }
    }

    @Test func itFollowsTheDataWithoutAMaximumAge() async throws {
        let bench = Bench()
        let definition = try bench.definition()
        try await bench.database.put("c/a", ["n": .integer(1)])
        let first = try await bench.bundle(definition)
        #expect(first.made.metadata.totalDocuments == 1)
        bench.clock.advance(seconds: 1000)
        let again = try await bench.bundle(definition)
        #expect(again.made.plain === first.made.plain)
        #expect(again.ageSeconds == 0)
        try await bench.database.put("c/b", ["n": .integer(1)])
        let changed = try await bench.bundle(definition)
        #expect(changed.made.metadata.totalDocuments == 2)
        #expect(changed.made.digest != first.made.digest)
    }

    @Test func withinItsMaximumAgeTheCachedBundleIsSent() async throws {
        let bench = Bench()
        let definition = try bench.definition(#","maxAge":60"#)
        try await bench.database.put("c/a", ["n": .integer(1)])
        let first = try await bench.bundle(definition)
        bench.clock.advance(seconds: 20)
        _ = try await bench.bundle(definition)
        try await bench.database.put("c/b", ["n": .integer(1)])
        bench.clock.advance(seconds: 30)
        let cached = try await bench.bundle(definition)
        #expect(cached.made.plain === first.made.plain)
        // It was found to be up to date thirty seconds ago.
        #expect(cached.ageSeconds == 30)
        bench.clock.advance(seconds: 10)
        #expect(try await bench.bundle(definition).made.metadata.totalDocuments == 2)
    }

    @Test func itIsBuiltAgainBeforeItsReadTimeIsTooOld() async throws {
        let bench = Bench()
        let definition = try bench.definition()
        let first = try await bench.bundle(definition)
        bench.clock.advance(seconds: Double(Limits.bundleCacheSecondsMax) - 1)
        #expect(try await bench.bundle(definition).made.plain === first.made.plain)
        bench.clock.advance(seconds: 1)
        #expect(try await bench.bundle(definition).made.plain !== first.made.plain)
    }

    @Test func anotherDefinitionIsAnotherBundle() async throws {
        let bench = Bench()
        let one = try await bench.bundle(try bench.definition())
        let two = try await bench.bundle(try bench.definition(#","public":true"#))
        let three = try await bench.bundle(try bench.definition(id: "y"))
        #expect(one.made.plain !== two.made.plain)
        #expect(one.made.plain !== three.made.plain)
        #expect(three.made.metadata.id == "y")
    }

    @Test func theCacheIsBounded() async throws {
        let bench = Bench()
        let first = try await bench.bundle(try bench.definition(id: "0"))
        bench.clock.advance(seconds: 1)
        for number in 1...Limits.bundlesCachedMax { _ = try await bench.bundle(try bench.definition(id: "\(number)")) }
        // The first one was not requested again.
        #expect(try await bench.bundle(try bench.definition(id: "0")).made.plain !== first.made.plain)
    }

    @Test func concurrentBuildsWait() async throws {
        let bench = Bench()
        try await bench.database.put("c/a", ["n": .integer(1)])
        let answers = try await withThrowingTaskGroup(of: BundleCache.Answer.self) { group in
            for number in 0..<10 * Limits.bundlesBuildingMax {
                let definition = try bench.definition(id: "\(number % 20)")
                group.addTask { try await bench.bundle(definition) }
            }
            var answers: [BundleCache.Answer] = []
            for try await answer in group { answers.append(answer) }
            return answers
        }
        #expect(answers.allSatisfy { $0.made.metadata.totalDocuments == 1 })
        #expect(Set(answers.map { ObjectIdentifier($0.made.plain) }).count == 20)
    }

    @Test func aRequestAfterACommitSeesItAlsoDuringAnEarlierBuild() async throws {
        let bench = Bench()
        let definition = try bench.definition()
        for number in 1...100 {
            async let before = bench.bundle(definition)
            try await bench.database.put("c/\(number)", ["n": .integer(1)])
            let after = try await bench.bundle(definition)
            #expect(after.made.metadata.totalDocuments == number)
            _ = try await before
        }
    }

    @Test func failuresAreNotCached() async throws {
        let bench = Bench()
        let foreign = "projects/other/databases/(default)/documents/a/b"
        try await bench.database.put("c/a", ["r": .reference(foreign)])
        let definition = try bench.definition(#","maxAge":60"#)
        await #expect(throws: Status.self) { try await bench.bundle(definition) }
        try await bench.database.put("c/a", ["n": .integer(1)])
        #expect(try await bench.bundle(definition).made.metadata.totalDocuments == 1)
    }

    @Test func savedDefinitionsAreBounded() async throws {
        let bench = Bench()
        let saved = SavedBundles(database: try bench.database)
        let string = Array(#"{"documents":["c/d"]}"#.utf8)
        func save(_ name: String) async throws {
            _ = try await withCheckedContinuation { continuation in
                do throws(Status) {
                    try saved.save(name, string) { continuation.resume(returning: $0) }
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }.get()
        }
        for number in 0..<Limits.bundleDefinitionsMax { try await save("b\(number)") }
        await #expect(throws: Status.self) { try await save("more") }
        try await save("b0")
        #expect(try saved.all().count == Limits.bundleDefinitionsMax)
        #expect(try saved.definition("b7")?.documents.map(\.path.string) == ["c/d"])
        #expect(try saved.definition("more") == nil)
    }
}
