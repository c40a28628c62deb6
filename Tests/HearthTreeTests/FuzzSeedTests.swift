import HearthFuzzing
import Glibc
import HearthTree
import Testing

/// Passes every stored seed of the targets for trees (Tests/Fuzz) to both entry points: errors that the fuzzer has
/// found stay fixed.
@Suite struct FuzzSeedTests {
    @Test(arguments: ["tree", "treequery"]) func everySeedIsAnsweredOrRefused(_ target: String) {
        let seeds = Self.seeds(of: target)
        // With a wrong folder this test would pass without reading anything.
        #expect(seeds.count >= 5)
        for seed in seeds {
            #expect(!seed.isEmpty)
            TreeFuzzing.fuzzTree(seed)
            TreeFuzzing.fuzzQuery(seed)
        }
    }

    private static func seeds(of target: String) -> [[UInt8]] {
        let parts = #filePath.split(separator: "/").dropLast(2).map(String.init) + ["Fuzz", target, "seeds"]
        let folder = "/" + parts.joined(separator: "/")
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var seeds: [[UInt8]] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard !name.hasPrefix("."), let file = fopen(folder + "/" + name, "rb") else { continue }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
            seeds.append(bytes)
        }
        return seeds
    }
}
