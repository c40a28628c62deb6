import HearthFuzzing
import Glibc
import HearthBundle
import HearthNetwork
import HearthRules
import HearthFirestoreServer
import HearthRealtimeServer
import HearthDocuments
import HearthTree
import HearthWebSocket
import HearthWire
import Testing

/// Runs every stored seed of every fuzz target (Tests/Fuzz) on every entry point, so that bugs that the fuzzer found do
/// not return.
@Suite struct FuzzSeedTests {
    static let targets = [
        "protobuf", "json", "http1", "rest", "indexkeys", "listen", "write", "webchannel", "bundle", "rules", "tree",
        "treequery", "websocket", "realtime", "databaserules", "changes", "triggers", "patterns", "endpoint",
        "export", "http2", "http2output", "documentstore", "treestore",
    ]

    @Test(arguments: targets) func everySeedIsAnsweredOrRejected(_ target: String) throws {
        let seeds = Self.seeds(of: target)
        // With a wrong folder this test would pass without reading any seed.
        #expect(seeds.count >= 5)
        for seed in seeds {
            #expect(!seed.isEmpty)
            WireFuzzing.fuzzProtobuf(seed)
            WireFuzzing.fuzzJSON(seed)
            BundleFuzzing.fuzz(seed)
            ExportFuzzing.fuzz(seed)
            NetworkFuzzing.fuzzHTTP1(seed)
            HTTP2Fuzzing.fuzzInput(seed)
            HTTP2Fuzzing.fuzzOutput(seed)
            ServiceFuzzing.fuzzREST(seed)
            StorageFuzzing.fuzzIndexKeys(seed)
            StreamFuzzing.fuzzListen(seed)
            StreamFuzzing.fuzzWrite(seed)
            StreamFuzzing.fuzzWebChannel(seed)
            RulesFuzzing.fuzz(seed)
            TreeRulesFuzzing.fuzz(seed)
            TreeFuzzing.fuzzTree(seed)
            TreeFuzzing.fuzzQuery(seed)
            WebSocketFuzzing.fuzz(seed)
            RealtimeFuzzing.fuzz(seed)
            ChangeFuzzing.fuzz(seed)
            TriggerFuzzing.fuzzDefinitions(seed)
            TriggerFuzzing.fuzzPatterns(seed)
            EndpointFuzzing.fuzz(seed)
            StoredFuzzing.fuzzDatabase(seed)
            StoredFuzzing.fuzzNamespace(seed)
        }
    }

    /// Every seed must reach its code: the paths of REST seeds are routes, and their bodies are accepted.
    @Test func theSeedsForRESTAreRequests() throws {
        for seed in Self.seeds(of: "rest") where !seed.isEmpty {
            #expect(ServiceFuzzing.isRoute(seed))
        }
    }

    private static func seeds(of target: String) -> [[UInt8]] {
        var parts = #filePath.split(separator: "/").dropLast(2).map(String.init)
        parts += ["Fuzz", target, "seeds"]
        let folder = "/" + parts.joined(separator: "/")
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var seeds: [[UInt8]] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(".") { continue }
            guard let file = fopen(folder + "/" + name, "rb") else { continue }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
            seeds.append(bytes)
        }
        return seeds
    }
}
