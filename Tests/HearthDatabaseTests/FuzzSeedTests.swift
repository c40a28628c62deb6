import Foundation
import HearthClientFuzzing
import HearthTestSupport
import Testing

/// Passes every stored seed of these fuzz targets (Tests/Fuzz) to its entry point: errors that the fuzzer has found stay fixed.
@Suite(.serialized) struct FuzzSeedTests {
    private static let entries: [(target: String, fuzz: @Sendable ([UInt8]) -> Void)] = [
        ("databaseclient", { DatabaseClientFuzzing.fuzz($0) }), ("databasecache", { CacheFuzzing.fuzzDatabase($0) }),
        ("firestorecache", { CacheFuzzing.fuzzFirestore($0) }),
    ]

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: 0..<entries.count)
    func everySeedIsAnsweredOrRefused(_ index: Int) async throws {
        let (target, fuzz) = Self.entries[index]
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fuzz/\(target)/seeds")
        let seeds = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        // With a wrong folder this test would pass without reading anything.
        #expect(seeds.count >= 5)
        for seed in seeds where !seed.lastPathComponent.hasPrefix(".") {
            let bytes = [UInt8](try Data(contentsOf: seed))
            // It waits for other threads, which must not be those of the tests.
            try await blocking { fuzz(bytes) }
        }
    }
}
