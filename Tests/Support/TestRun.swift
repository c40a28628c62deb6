import Glibc

/// The length and the seeds of the random tests.
///
/// `HEARTH_TEST_SEED` repeats a run; `HEARTH_TEST_EFFORT` multiplies the number of cases (1 when it isn't set);
/// `HEARTH_TEST_INTERLEAVINGS` is the number of orders of threads.
package enum TestRun {
    package static let givenSeed = environment("HEARTH_TEST_SEED")
    package static let effort = Int(environment("HEARTH_TEST_EFFORT") ?? 1)

    /// The seed of a run: given, else new each time.
    package static func seed() -> UInt64 { givenSeed ?? UInt64.random(in: 0..<1_000_000_000) }

    /// New seeds each time, or only the given one.
    package static func seeds(_ count: Int) -> [UInt64] {
        if let givenSeed { return [givenSeed] }
        return (0..<count * effort).map { _ in seed() }
    }

    /// The seeds from 1 on, of which a longer run has more; or only the given one.
    package static func numbers(_ count: Int) -> [UInt64] {
        givenSeed.map { [$0] } ?? Array(1...UInt64(count * effort))
    }

    /// Every third of some cases that all matter, from another one on each time; all of them in a longer run.
    package static func part(of count: Int) -> StrideTo<Int> {
        effort > 1 ? stride(from: 0, to: count, by: 1) : stride(from: Int(seed() % 3), to: count, by: 3)
    }

    /// A few fixed seeds and a new one each time, or only the given one.
    package static let fixedSeedsAndNewOne: [UInt64] =
        givenSeed.map { [$0] } ?? [1, 2, 3, UInt64.random(in: 4...UInt64.max)]

    package static func interleavings(_ countDefault: Int) -> Int {
        environment("HEARTH_TEST_INTERLEAVINGS").map { Int($0) } ?? countDefault
    }

    private static func environment(_ name: String) -> UInt64? {
        getenv(name).flatMap { UInt64(String(cString: $0)) }
    }
}
