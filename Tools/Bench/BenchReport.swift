import HearthModel
import HearthToolSupport
import Glibc
import HearthHost
import HearthWire

/// All figures of one run of the bench.
struct BenchReport {
    private struct Row {
        var workload: String
        var metric: String
        var unit: String
        var direction: Figure.Direction
        /// By target, one value a run.
        var values: [String: [Double]] = [:]
    }

    /// A workload that a peer does not support.
    private struct Gap {
        var workload: String
        var target: String
        var reason: String
    }

    let settings: BenchSettings
    private var rows: [Row] = []
    private var targets: [String] = []
    private var gaps: [Gap] = []

    init(_ settings: BenchSettings) {
        self.settings = settings
    }

    mutating func add(_ figures: [Figure], to target: String) {
        if !targets.contains(target) { targets.append(target) }
        for figure in figures {
            if let index = rows.firstIndex(where: { $0.workload == figure.workload && $0.metric == figure.metric }) {
                rows[index].values[target, default: []].append(figure.value)
            } else {
                rows.append(
                    Row(
                        workload: figure.workload, metric: figure.metric, unit: figure.unit,
                        direction: figure.direction,
                        values: [target: [figure.value]]))
            }
        }
    }

    mutating func addGap(_ workload: String, _ target: String, _ reason: String) {
        gaps.append(Gap(workload: workload, target: target, reason: reason))
    }

    static func median(_ values: [Double]) -> Double {
        guard !values.isEmpty else { return .nan }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// The factor by which the first target is better; nil for itself or where a figure is missing.
    private func ratio(_ row: Row, _ target: String) -> Double? {
        guard let first = targets.first, target != first, let own = row.values[first], let other = row.values[target]
        else { return nil }
        let (a, b) = (Self.median(own), Self.median(other))
        guard a > 0, b > 0 else { return nil }
        return row.direction == .higherIsBetter ? a / b : b / a
    }

    // MARK: Comparisons

    private func median(_ workload: String, _ metric: String, _ target: String) -> Double? {
        rows.first { $0.workload == workload && $0.metric == metric }?.values[target].map(Self.median)
    }

    /// The meaning of the figures: all requirements for Hearth, as far as they were measured, and the comparisons with
    /// peers without a requirement. In the order of the workloads.
    func comparisons() -> [BenchComparison] {
        guard let hearth = targets.first else { return [] }
        return Workload.all.flatMap { workload -> [BenchComparison] in
            let rows = rows.filter { $0.workload == workload.name }
            let bars = BenchBar.all.filter { $0.workload == workload.name }
            let barred = bars.compactMap { bar in
                rows.first { $0.metric == bar.metric }.flatMap { comparison(bar, $0, hearth) }
            }
            let others = targets.dropFirst().compactMap { target -> BenchComparison? in
                guard !bars.contains(where: { $0.base?.workload == nil && $0.base?.target == target }) else {
                    return nil
                }
                let metric = Self.metric(of: target)
                let row = metric.map { metric in rows.first { $0.metric == metric } } ?? rows.first
                guard let row, let ratio = ratio(row, target) else { return nil }
                return BenchComparison(
                    workload: workload.name, metric: row.metric, base: target, ratio: ratio,
                    value: Self.string(ratio) + "x")
            }
            return barred + others
        }
    }

    /// The figure that peers are compared by; nil: a workload's first figure.
    private static func metric(of target: String) -> String? {
        target == BenchTarget.redis.name ? Figure.perCPUSecond : nil
    }

    private func comparison(_ bar: BenchBar, _ row: Row, _ hearth: String) -> BenchComparison? {
        guard let own = row.values[hearth].map(Self.median) else { return nil }
        var other = 1.0
        if let base = bar.base {
            guard let found = median(base.workload ?? bar.workload, bar.metric, base.target ?? hearth) else {
                return nil
            }
            other = found
        }
        guard own > 0, other > 0 else { return nil }
        return bar.comparison(own: own, other: other, unit: row.unit, row.direction, hearth: hearth)
    }

    // MARK: Table

    func table() -> String {
        var lines = [["workload", "figure"] + targets.flatMap { $0 == targets.first ? [$0] : [$0, "ratio"] }]
        for row in rows {
            var line = [row.workload, "\(row.metric) (\(row.unit))"]
            for target in targets {
                line.append(row.values[target].map(Self.spread) ?? "-")
                if target != targets.first { line.append(ratio(row, target).map { Self.string($0) + "x" } ?? "-") }
            }
            lines.append(line)
        }
        var string = Self.table(lines, leftColumns: 2)
        let bars = comparisons().filter { $0.bar != nil }
        if !bars.isEmpty {
            let lines = bars.map { bar in
                [bar.workload, bar.metric, bar.base, bar.value, bar.wanted ?? "", bar.isMet == true ? "met" : "missed"]
            }
            string += "\n" + Self.table([["workload", "figure", "beside", "is", "bar", ""]] + lines, leftColumns: 3)
        }
        if !gaps.isEmpty {
            string += "\n" + gaps.map { "\($0.target) could not do \($0.workload): \($0.reason)\n" }.joined()
        }
        return string
    }

    private static func table(_ lines: [[String]], leftColumns: Int) -> String {
        let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            line.enumerated().map { column, cell in
                let space = String(repeating: " ", count: widths[column] - cell.count)
                return column < leftColumns ? cell + space : space + cell
            }.joined(separator: "   ") + "\n"
        }.joined()
    }

    /// How far the runs of one program are apart: their range as a part of the median. Nil for one run.
    static func noise(_ values: [Double]) -> Double? {
        guard values.count > 1, let least = values.min(), let greatest = values.max() else { return nil }
        let median = median(values)
        return median > 0 ? (greatest - least) / median : nil
    }

    /// `5637 (5102..5801, 12 %)`
    private static func spread(_ values: [Double]) -> String {
        guard values.count > 1, let least = values.min(), let greatest = values.max() else {
            return string(median(values))
        }
        let noise = noise(values).map { ", \(Int(($0 * 100).rounded())) %" } ?? ""
        return "\(string(median(values))) (\(string(least))..\(string(greatest))\(noise))"
    }

    /// Three significant digits.
    static func string(_ number: Double) -> String {
        if !number.isFinite { return "-" }
        if number >= 100 { return String(Int(number.rounded())) }
        let decimals = number >= 10 ? 1 : number >= 1 ? 2 : 3
        let scale = decimals == 1 ? 10.0 : decimals == 2 ? 100.0 : 1000.0
        let scaled = Int((number * scale).rounded())
        let fraction = String(scaled % Int(scale))
        return "\(scaled / Int(scale))." + String(repeating: "0", count: decimals - fraction.count) + fraction
    }

    // MARK: JSON

    func writeJSON(_ path: String?) throws(ToolFailure) {
        guard let path else { return }
        let string = json()
        if path == "-" { return Output.string(string) }
        try OutputFile.write(string, to: path)
    }

    func json() -> String {
        var writer = JSONWriter()
        writer.raw("{\"version\":")
        writer.string(HearthVersion.string)
        writer.raw(",\"cores\":")
        writer.integer(Int64(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        writer.raw(",\"runs\":")
        writer.integer(Int64(settings.runs))
        writer.raw(",\"seconds\":")
        writer.double(settings.seconds)
        writer.raw(",\"figures\":[")
        var isFirst = true
        for row in rows {
            for target in targets {
                guard let values = row.values[target] else { continue }
                writer.raw(isFirst ? "\n" : ",\n")
                isFirst = false
                write(row, target, values, to: &writer)
            }
        }
        writer.raw("\n],\"bars\":[")
        for (index, comparison) in comparisons().filter({ $0.bar != nil }).enumerated() {
            writer.raw(index == 0 ? "\n" : ",\n")
            write(comparison, to: &writer)
        }
        writer.raw("\n],\"gaps\":[")
        for (index, gap) in gaps.enumerated() {
            writer.raw(index == 0 ? "\n" : ",\n")
            write([("workload", gap.workload), ("target", gap.target), ("reason", gap.reason)], to: &writer)
            writer.raw("}")
        }
        writer.raw("\n]}\n")
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// Begins an object.
    private func write(_ members: [(name: String, value: String)], to writer: inout JSONWriter) {
        for (index, member) in members.enumerated() {
            writer.raw(index == 0 ? "{" : ",")
            writer.string(member.name)
            writer.raw(":")
            writer.string(member.value)
        }
    }

    /// `ratio` and `bar` use the same unit: the requirement is met when the ratio is at least as great.
    private func write(_ comparison: BenchComparison, to writer: inout JSONWriter) {
        write(
            [
                ("workload", comparison.workload), ("figure", comparison.metric), ("beside", comparison.base),
                ("is", comparison.value), ("wanted", comparison.wanted ?? ""),
            ], to: &writer)
        writer.raw(",\"ratio\":")
        writer.double(comparison.ratio)
        writer.raw(",\"bar\":")
        writer.double(comparison.bar ?? 0)
        writer.raw(",\"met\":")
        writer.bool(comparison.isMet == true)
        writer.raw("}")
    }

    private func write(_ row: Row, _ target: String, _ values: [Double], to writer: inout JSONWriter) {
        write(
            [
                ("workload", row.workload), ("figure", row.metric), ("unit", row.unit), ("target", target),
                ("direction", row.direction.rawValue),
            ], to: &writer)
        writer.raw(",\"median\":")
        writer.double(Self.median(values))
        if let ratio = ratio(row, target) {
            writer.raw(",\"ratio\":")
            writer.double(ratio)
        }
        if let noise = Self.noise(values) {
            writer.raw(",\"noise\":")
            writer.double(noise)
        }
        writer.raw(",\"values\":[")
        for (index, value) in values.enumerated() {
            if index > 0 { writer.byte(UInt8(ascii: ",")) }
            writer.double(value)
        }
        writer.raw("]}")
    }
}
