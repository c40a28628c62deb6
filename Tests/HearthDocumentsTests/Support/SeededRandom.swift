import Glibc

/// SplitMix64: a short generator whose runs can be repeated by their seed.
struct SeededRandom: RandomNumberGenerator {
    let seed: UInt64
    private var state: UInt64

    init(_ seed: UInt64) {
        self.seed = seed
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next(upperBound: UInt64(bound))) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    mutating func pick<C: RandomAccessCollection>(_ choices: C) -> C.Element where C.Index == Int {
        choices[choices.startIndex + below(choices.count)]
    }

    /// A generator of its own for a part of a run, so that the parts can be repeated one by one.
    mutating func fork() -> SeededRandom { SeededRandom(next()) }
}

/// How long the random tests run, and from which seed.
///
/// `HEARTH_TEST_SEED` repeats a run; `HEARTH_TEST_EFFORT` multiplies the number of cases (1 when it isn't set).
enum TestRun {
    static let givenSeed = environment("HEARTH_TEST_SEED")
    /// Seeds of `InterleavingTests`: `HEARTH_TEST_INTERLEAVINGS`.
    static let interleavings = Int(environment("HEARTH_TEST_INTERLEAVINGS") ?? 300)
    static let effort = Int(environment("HEARTH_TEST_EFFORT") ?? 1)

    /// The seed of a run: given, else new each time. Failures name it.
    static func seed() -> UInt64 { givenSeed ?? UInt64.random(in: 0..<1_000_000_000) }

    private static func environment(_ name: String) -> UInt64? {
        getenv(name).flatMap { UInt64(String(cString: $0)) }
    }
}
