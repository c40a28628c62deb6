/// A figure of Hearth and the base that it is compared with.
struct BenchComparison: Sendable {
    var workload: String
    var metric: String
    /// `emulator`, `commit-32`, `limit`
    var base: String
    /// The factor by which it is better than the base, or than the limit.
    var ratio: Double
    /// The minimum of the ratio; nil without a requirement.
    var bar: Double?
    /// The comparison in its own terms: `2.1x`, `0.58 ms`.
    var value = ""
    /// The bar in the same terms: `>= 1.20x`, `<= 30 ms`.
    var wanted: String?

    var isMet: Bool? { bar.map { ratio >= $0 } }
}
