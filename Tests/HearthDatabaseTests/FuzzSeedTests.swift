import Foundation
import HearthClientFuzzing
import HearthTestSupport
import Testing

/// Passes every stored seed of the fuzz target `databaseclient` (Tests/Fuzz) to its entry point: errors that the fuzzer has found stay fixed.
@Suite(.serialized) struct FuzzSeedTests {
    @Test(.timeLimit(.minutes(Patience.minutes))) func everySeedIsAnsweredOrRefused() async throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fuzz/databaseclient/seeds")
        let seeds = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        // With a wrong folder this test would pass without reading anything.
        #expect(seeds.count >= 5)
        for seed in seeds where !seed.lastPathComponent.hasPrefix(".") {
            let bytes = [UInt8](try Data(contentsOf: seed))
            // It waits for other threads, which must not be those of the tests.
            try await blocking { DatabaseClientFuzzing.fuzz(bytes) }
        }
    }
}
