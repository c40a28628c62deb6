/// SplitMix64: a short generator that repeats its sequence for a seed. Failures name the seed.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    package let seed: UInt64
    private var state: UInt64

    package init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 on.
    package mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    package mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }
    package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    package mutating func isOne(in count: Int) -> Bool { below(count) == 0 }

    package mutating func pick<Choices: RandomAccessCollection>(_ choices: Choices) -> Choices.Element
    where Choices.Index == Int {
        choices[choices.startIndex + below(choices.count)]
    }

    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }

    /// A generator of its own for a part of a run, so that the parts can be repeated one by one.
    package mutating func fork() -> SeededGenerator { SeededGenerator(seed: next()) }
}
