import Glibc
import HearthFuzzing
import HearthTestSupport
import Testing

/// The fuzz entries of triggers, with seeds that are changed at random: a short form of what libFuzzer does for longer.
@Suite struct TriggerFuzzTests {
    private static let targets: [(name: String, rounds: Int, run: @Sendable ([UInt8]) -> Void)] = [
        ("triggers", 3000, { TriggerFuzzing.fuzzDefinitions($0) }),
        ("patterns", 10_000, { TriggerFuzzing.fuzzPatterns($0) }), ("endpoint", 600, { EndpointFuzzing.fuzz($0) }),
    ]

    @Test(arguments: [0, 1, 2]) func changedSeedsBreakNoPromise(index: Int) throws {
        let target = Self.targets[index]
        let seeds = Self.seeds(of: target.name)
        // With a wrong folder this test would pass without reading any seed.
        try #require(seeds.count >= 5)
        for seed in seeds { target.run(seed) }
        let number = UInt64.random(in: 0 ... .max)
        // A violated invariant traps: this line says with which seed it does so again.
        print("changedSeedsBreakNoPromise: \(target.name) with the seed \(number)")
        var random = SplitMix(state: number)
        for _ in 0..<target.rounds { target.run(Self.changed(seeds, &random)) }
    }

    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    /// A seed with up to eight changes: bytes that are others, missing, inserted, or a piece of another seed.
    private static func changed(_ seeds: [[UInt8]], _ random: inout SplitMix) -> [UInt8] {
        var bytes = seeds.randomElement(using: &random) ?? []
        let marks = Array("{}*=/\"\\:,\r\n 0129aé".utf8)
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            let position = Int.random(in: 0...bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0 where position < bytes.count: bytes[position] = UInt8.random(in: 0 ... .max, using: &random)
            case 1 where position < bytes.count: bytes[position] = marks.randomElement(using: &random) ?? 0
            case 2 where position < bytes.count:
                bytes.removeSubrange(position..<min(bytes.count, position + Int.random(in: 1...9, using: &random)))
            case 3:
                let other = seeds.randomElement(using: &random) ?? []
                let start = Int.random(in: 0...other.count, using: &random)
                bytes.insert(contentsOf: other[start...].prefix(Int.random(in: 1...20, using: &random)), at: position)
            default: bytes.insert(marks.randomElement(using: &random) ?? 0, at: position)
            }
        }
        return bytes
    }

    private static func seeds(of target: String) -> [[UInt8]] {
        var parts = #filePath.split(separator: "/").dropLast(2).map(String.init)
        parts += ["Fuzz", target, "seeds"]
        let folder = "/" + parts.joined(separator: "/")
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var seeds: [(name: String, bytes: [UInt8])] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(".") { continue }
            guard let file = fopen(folder + "/" + name, "rb") else { continue }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
            seeds.append((name, bytes))
        }
        // In a fixed order, so that a seed of chance gives the same inputs again.
        return seeds.sorted { $0.name < $1.name }.map(\.bytes)
    }
}
