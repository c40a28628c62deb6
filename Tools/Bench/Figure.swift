/// One measured number.
struct Figure: Sendable {
    enum Direction: String, Sendable {
        case higherIsBetter
        case lowerIsBetter
    }

    static let serverCPU = "server cpu"
    static let generatorCPU = "generator cpu"
    static let diskP50 = "fdatasync p50"
    static let perCPUSecond = "per server cpu second"

    var workload: String
    /// `rate`, `p50`, …
    var metric: String
    var unit: String
    var value: Double
    var direction: Direction
}
