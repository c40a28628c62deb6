/// The requirement for a figure of Hearth: a quality goal of the project, independent of the machine.
struct BenchBar: Sendable {
    /// The base of the comparison.
    struct Base: Sendable {
        /// Nil: the bar's own.
        var workload: String?
        /// Nil: Hearth itself.
        var target: String?
    }

    enum Kind: Sendable {
        /// At least this many times as good as the base; below 1 it may be worse by this factor.
        case asGood(Double, as: Base)
        /// At most this many times the base's value.
        case atMostTimes(Double, Base)
        /// At most this much above the base's value.
        case atMostAbove(Double, Base)
        /// A limit for the figure itself.
        case limit(Double)
    }

    let workload: String
    let metric: String
    let kind: Kind

    /// In the order of the workloads; the bars of a workload are adjacent.
    static let all: [BenchBar] = [
        BenchBar(workload: "startup", metric: "first answer", kind: .limit(30)),
        BenchBar(workload: "idle-memory", metric: "resident", kind: .limit(20)),
        BenchBar(workload: "connections", metric: "resident each", kind: .limit(25)),
        BenchBar(workload: "commit-1", metric: "p50", kind: .atMostAbove(0.15, Base(target: "fdatasync"))),
        emulator("commit-1", 0.8),
        BenchBar(workload: "commit-32", metric: "rate", kind: .asGood(1.2, as: Base(target: "postgres"))),
        BenchBar(workload: "commit-32", metric: "rate", kind: .asGood(0.7, as: Base(target: "sqlite"))),
        emulator("commit-32", 0.8),
        BenchBar(
            workload: "commit-32-one", metric: "rate",
            kind: .asGood(3, as: Base(workload: "commit-32", target: "postgres"))),
        emulator("commit-32-one", 0.8),
        BenchBar(workload: "get", metric: "rate", kind: .asGood(0.5, as: Base(workload: "get-constant"))),
        emulator("get", 4),
        BenchBar(workload: "get-rest", metric: "rate", kind: .asGood(0.6, as: Base(target: "nginx"))),
        emulator("get-rest", 4),
        BenchBar(workload: "query-range-small", metric: "rate", kind: .limit(2500)),
        emulator("query-range-small", 25),
        BenchBar(workload: "query-equal-small", metric: "rate", kind: .limit(2500)),
        emulator("query-equal-small", 25),
        BenchBar(workload: "query-range-large", metric: "rate", kind: .limit(2500)),
        sameMedian("query-range-large", "query-range-small"),
        emulator("query-range-large", 800),
        BenchBar(workload: "query-equal-large", metric: "rate", kind: .limit(2500)),
        sameMedian("query-equal-large", "query-equal-small"),
        emulator("query-equal-large", 800),
        BenchBar(workload: "bulk", metric: "documents", kind: .limit(20_000)),
        BenchBar(workload: "memory-after-load", metric: "resident", kind: .asGood(10, as: Base(target: "emulator"))),
        emulator("commit-32-memory", 4),
        BenchBar(workload: "commit-32-many", metric: "rate", kind: .asGood(0.5, as: Base(workload: "commit-32"))),
        BenchBar(workload: "query-range-huge", metric: "rate", kind: .limit(2500)),
        sameMedian("query-range-huge", "query-range-small"),
        BenchBar(workload: "query-equal-huge", metric: "rate", kind: .limit(2500)),
        sameMedian("query-equal-huge", "query-equal-small"),
        BenchBar(workload: "commit-32-rules", metric: "rate", kind: .asGood(0.8, as: Base(workload: "commit-32"))),
        BenchBar(workload: "rules-owner", metric: "decision", kind: .limit(1)),
        BenchBar(workload: "rules-validator", metric: "decision", kind: .limit(10)),
        BenchBar(workload: "listen-1", metric: "p50", kind: .asGood(10, as: Base(target: "emulator"))),
        BenchBar(workload: "listen-1", metric: "p99", kind: .asGood(10, as: Base(target: "emulator"))),
        BenchBar(workload: "listen-100", metric: "p50", kind: .asGood(10, as: Base(target: "emulator"))),
        BenchBar(workload: "listen-100", metric: "p99", kind: .asGood(10, as: Base(target: "emulator"))),
        BenchBar(workload: "listen-1-memory", metric: "p50", kind: .atMostTimes(3, Base(target: "redis"))),
        BenchBar(workload: "listen-hot", metric: "deliveries", kind: .limit(100_000)),
        BenchBar(workload: "listen-idle", metric: "resident each", kind: .limit(20)),
        BenchBar(workload: "listen-idle", metric: "commit", kind: .limit(1.2)),
        BenchBar(workload: "listen-resume", metric: "time", kind: .limit(1)),
        BenchBar(workload: "listen-resume", metric: "bytes", kind: .limit(1)),
        BenchBar(workload: "database-1", metric: "above the write", kind: .limit(1)),
        BenchBar(workload: "database-32", metric: "rate", kind: .asGood(0.7, as: Base(workload: "commit-32-one"))),
        BenchBar(workload: "database-fan-out", metric: "deliveries", kind: .limit(100_000)),
        BenchBar(workload: "database-idle", metric: "resident each", kind: .limit(16)),
        BenchBar(
            workload: "database-32-large", metric: "p50", kind: .atMostTimes(1.3, Base(workload: "database-32"))),
        BenchBar(
            workload: "database-32-large", metric: "server cpu",
            kind: .atMostTimes(1.3, Base(workload: "database-32"))),
        BenchBar(
            workload: "triggers-none", metric: "rate", kind: .asGood(0.97, as: Base(workload: "triggers-without"))),
        BenchBar(workload: "triggers-one", metric: "rate", kind: .asGood(0.8, as: Base(workload: "triggers-without"))),
        BenchBar(workload: "triggers-latency", metric: "p50", kind: .limit(3)),
        BenchBar(workload: "triggers-events", metric: "events", kind: .limit(10_000)),
        BenchBar(workload: "triggers-pending", metric: "events cost", kind: .limit(32)),
        BenchBar(workload: "count-huge", metric: "p50", kind: .limit(100)),
    ]

    private static func emulator(_ workload: String, _ factor: Double) -> BenchBar {
        BenchBar(workload: workload, metric: "rate", kind: .asGood(factor, as: Base(target: "emulator")))
    }

    /// The cost of a query depends on its result, not on the collection.
    private static func sameMedian(_ workload: String, _ base: String) -> BenchBar {
        BenchBar(workload: workload, metric: "p50", kind: .atMostTimes(1.3, Base(workload: base)))
    }

    var base: Base? {
        switch kind {
        case .asGood(_, let base), .atMostTimes(_, let base), .atMostAbove(_, let base): base
        case .limit: nil
        }
    }
}

extension BenchBar {
    /// - Parameters:
    ///   - own: the figure, in `unit`.
    ///   - other: the base's figure; any number for a limit.
    func comparison(own: Double, other: Double, unit: String, _ direction: Figure.Direction, hearth: String)
        -> BenchComparison
    {
        func times(_ number: Double) -> String { BenchReport.string(number) + "x" }
        func measured(_ number: Double) -> String { "\(BenchReport.string(number)) \(unit)" }
        let isRate = direction == .higherIsBetter
        let better = isRate ? own / other : other / own
        let target = base?.target ?? hearth
        var name = base?.workload.map { target == hearth ? $0 : "\(target) \($0)" } ?? target
        if case .limit = kind { name = "limit" }
        var result = BenchComparison(workload: workload, metric: metric, base: name, ratio: better)
        switch kind {
        case .asGood(let factor, _):
            result.bar = factor
            result.value = times(better)
            result.wanted = ">= " + times(factor)
        case .atMostTimes(let factor, _):
            result.bar = 1 / factor
            result.value = times(own / other)
            result.wanted = "<= " + times(factor)
        case .atMostAbove(let difference, _):
            result.ratio = (other + difference) / own
            result.bar = 1
            result.value = measured(own)
            result.wanted = "<= " + measured(other + difference)
        case .limit(let limit):
            result.ratio = isRate ? own / limit : limit / own
            result.bar = 1
            result.value = measured(own)
            result.wanted = (isRate ? ">= " : "<= ") + measured(limit)
        }
        return result
    }
}
