import Glibc

/// Numbers that a seed determines (SplitMix64).
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    package mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }
    package mutating func chance(_ one: Int) -> Bool { number(0..<one) == 0 }
    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }
}

package enum Seeds {
    /// A few fixed seeds and a new one each time, or the one of `HEARTH_TEST_SEED`, which a failure names.
    package static let all: [UInt64] = {
        if let string = getenv("HEARTH_TEST_SEED"), let seed = UInt64(String(cString: string)) { return [seed] }
        return [1, 2, 3, UInt64.random(in: 4...UInt64.max)]
    }()
}
