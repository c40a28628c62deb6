import Glibc
import HearthServer
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

    private let settings: BenchSettings
    private var rows: [Row] = []
    private var targets: [String] = []

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

    static func median(_ values: [Double]) -> Double {
        guard !values.isEmpty else { return .nan }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// How much better the first target is; nil for itself or where a figure is missing.
    private func ratio(_ row: Row, _ target: String) -> Double? {
        guard let first = targets.first, target != first, let own = row.values[first], let other = row.values[target]
        else { return nil }
        let (a, b) = (Self.median(own), Self.median(other))
        guard a > 0, b > 0 else { return nil }
        return row.direction == .higherIsBetter ? a / b : b / a
    }

    // MARK: Table

    func table() -> String {
        var lines = [["workload", "figure"] + targets.flatMap { $0 == targets.first ? [$0] : [$0, "ratio"] }]
        for row in rows {
            var line = [row.workload, "\(row.metric) (\(row.unit))"]
            for target in targets {
                line.append(row.values[target].map { Self.text(Self.median($0)) } ?? "-")
                if target != targets.first { line.append(ratio(row, target).map { Self.text($0) + "x" } ?? "-") }
            }
            lines.append(line)
        }
        let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            line.enumerated().map { column, cell in
                let space = String(repeating: " ", count: widths[column] - cell.count)
                return column < 2 ? cell + space : space + cell
            }.joined(separator: "   ") + "\n"
        }.joined()
    }

    /// Three digits that matter.
    static func text(_ number: Double) -> String {
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
        let text = json()
        if path == "-" { return Output.text(text) }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        let bytes = Array(text.utf8)
        guard descriptor >= 0, Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            throw ToolFailure(.data, "Cannot write \(path): \(String(cString: strerror(errno))).")
        }
        close(descriptor)
    }

    func json() -> String {
        var writer = JSONWriter()
        writer.raw("{\"version\":")
        writer.string(HearthVersion.text)
        writer.raw(",\"cores\":")
        writer.integer(Int64(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        writer.raw(",\"runs\":")
        writer.integer(Int64(settings.runs))
        writer.raw(",\"seconds\":")
        writer.integer(Int64(settings.seconds))
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
        writer.raw("\n]}\n")
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func write(_ row: Row, _ target: String, _ values: [Double], to writer: inout JSONWriter) {
        for (name, value) in [
            ("{\"workload\":", row.workload), (",\"figure\":", row.metric), (",\"unit\":", row.unit),
            (",\"target\":", target),
            (",\"direction\":", row.direction.rawValue),
        ] {
            writer.raw(name)
            writer.string(value)
        }
        writer.raw(",\"median\":")
        writer.double(Self.median(values))
        if let ratio = ratio(row, target) {
            writer.raw(",\"ratio\":")
            writer.double(ratio)
        }
        writer.raw(",\"values\":[")
        for (index, value) in values.enumerated() {
            if index > 0 { writer.byte(UInt8(ascii: ",")) }
            writer.double(value)
        }
        writer.raw("]}")
    }
}
