import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthDocuments
import Synchronization
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

/// The cost of a change for a listener with a limit, counted in records that are read.
@Suite("A change in a collection with a window of n, 10n and 100n results")
struct WindowGrowthTests {
    /// A listener of the first `limit` of three times as many documents, whose window is cached.
    private struct Scene {
        let store = CountedStore()
        let bench: StreamBench
        let call: TestCall
        let limit: Int
        let cachedWindows: MemoryBudget

        init(limit: Int, cached: Int = Limits.listenCachedWindowsBytesMax) async throws {
            self.limit = limit
            cachedWindows = MemoryBudget(bytesMax: cached, shareBytesMax: cached)
            bench = try StreamBench(memory: ServerMemory(cachedWindows: cachedWindows), store: store)
            for start in stride(from: 0, to: 3 * limit, by: 300) {
                try await bench.database.commit(
                    (start..<min(start + 300, 3 * limit)).map { Self.write("d\($0)", 1000 * $0, 0) })
            }
            call = await bench.listen()
            await call.ask(StreamBench.add(1, limit: limit))
            await until { [call] in !call.boundaries.isEmpty }
            // The window is found once more after the first change.
            try await put("d0", 0, 1)
        }

        static func write(_ id: String, _ n: Int, _ x: Int) -> Write {
            let fields = [
                MapValue.Field(name: "n", value: .integer(Int64(n))), .init(name: "x", value: .integer(Int64(x))),
            ]
            return Write(document: name(id), operation: .update(fields: MapValue(fields), mask: nil))
        }

        static func name(_ id: String) -> ResourceName {
            ResourceName(database: StreamBench.name, path: ResourcePath(["c", id]))
        }

        /// Commits a change of the window, and waits until the client was notified.
        func commit(_ write: Write) async throws {
            try await bench.database.commit([write])
            let version = try bench.database.view().version
            await until {
                guard let last = call.responses.last?.targetChange, let token = ResumeToken(last.resumeToken) else {
                    return false
                }
                return token.version >= version
            }
        }

        func put(_ id: String, _ n: Int, _ x: Int) async throws { try await commit(Self.write(id, n, x)) }

        /// The number of records that readers read during some work.
        func reads(_ body: () async throws -> Void) async throws -> Int {
            let before = store.reads.load(ordering: .relaxed)
            try await body()
            return store.reads.load(ordering: .relaxed) - before
        }
    }

    @Test("reads the sent documents, and neither the window nor the collection")
    func changes() async throws {
        var counts: [[Int]] = []
        for limit in [10, 100, 1000] {
            let scene = try await Scene(limit: limit)
            let changed = try await scene.reads {
                for x in 2..<22 { try await scene.put("d\(limit / 2)", 1000 * (limit / 2), x) }
            }
            let moved = try await scene.reads {
                // To the front and back again.
                for x in 0..<10 {
                    try await scene.put("d\(limit / 2)", -1, x)
                    try await scene.put("d\(limit / 2)", 1000 * (limit / 2), x)
                }
            }
            // One document enters, one leaves.
            let came = try await scene.reads { for x in 0..<20 { try await scene.put("new\(x)", -x - 2, x) } }
            let outside = try await scene.reads {
                for x in 0..<20 {
                    try await scene.bench.database.commit([Scene.write("d\(2 * limit)", 2000 * limit, x)])
                }
            }
            counts.append([changed, moved, came, outside])
            await scene.call.leave()
            await until { scene.cachedWindows.usedBytes == 0 }
        }
        print("reads of 20 changes inside, 20 moves, 20 that come, 20 outside, at windows of 10, 100, 1000:", counts)
        for index in 0..<4 {
            #expect(counts[0][index] <= 20 * 10)
            #expect(counts[1][index] == counts[0][index] && counts[2][index] == counts[0][index])
        }
    }

    @Test("reads a few results for each document that leaves, however many leave")
    func leaving() async throws {
        var counts: [Int] = []
        for limit in [10, 100, 1000] {
            let scene = try await Scene(limit: limit)
            let reads = try await scene.reads {
                for id in 0..<limit {
                    try await scene.commit(Write(document: Scene.name("d\(id)"), operation: .delete))
                }
            }
            counts.append(reads / limit)
            let expected = Set((limit..<2 * limit).map { "\(StreamBench.root)/documents/c/d\($0)" })
            #expect(scene.call.documents(of: 1) == expected)
            await scene.call.leave()
        }
        print("reads for each document that leaves:", counts)
        #expect(counts.allSatisfy { $0 <= 25 })
    }

    @Test("is found anew while there is no memory to cache it, and cached when there is again")
    func cacheMemory() async throws {
        let limit = 100
        let scene = try await Scene(limit: limit, cached: 64 << 10)
        let other = scene.cachedWindows.reservation(for: .init(account: 9, connection: 9, isAdministrator: true))
        #expect(other.resize(to: (64 << 10) - scene.cachedWindows.usedBytes))
        // The cache grows beyond its reservation.
        for number in 0..<40 { try await scene.put("new\(number)", -number, 0) }
        let without = try await scene.reads { for x in 0..<10 { try await scene.put("d1", 1000, 100 + x) } }
        #expect(without > 10 * limit)
        other.resize(to: 0)
        for x in 0..<20 { try await scene.put("d1", 1000, 200 + x) }
        let with = try await scene.reads { for x in 0..<10 { try await scene.put("d1", 1000, 300 + x) } }
        #expect(with < 10 * 10)
        await scene.call.leave()
    }
}
