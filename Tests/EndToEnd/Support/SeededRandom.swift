import Foundation

/// SplitMix64: a short generator that repeats its sequence for a seed.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    mutating func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }
}

/// The length and the seed of the random tests.
///
/// `HEARTH_TEST_SEED` repeats a run; `HEARTH_TEST_EFFORT` multiplies the number of cases (1 by default).
enum TestRun {
    static let effort = Int(environment("HEARTH_TEST_EFFORT") ?? 1)

    /// The given number of seeds, or only the one of `HEARTH_TEST_SEED`.
    static func seeds(_ count: Int) -> [UInt64] {
        if let given = environment("HEARTH_TEST_SEED") { return [given] }
        return (0..<count * effort).map { _ in UInt64.random(in: 0..<1_000_000_000) }
    }

    private static func environment(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }
}
