import HearthModel
import HearthHost
import Glibc

/// The comparisons of a report as a picture: one horizontal bar each, grouped by workload, on a logarithmic scale on
/// which 1 means "as good", with a mark at the required value.
struct BenchPlot {
    private let comparisons: [BenchComparison]
    private let title: String

    private static let width = 1120.0
    private static let labelEnd = 330.0
    private static let plotEnd = 850.0
    private static let valueStart = 866.0
    private static let top = 96.0
    private static let rowHeight = 20.0
    private static let groupGap = 12.0

    private enum Colour {
        static let met = "#2a7f9e"
        static let missed = "#d1603d"
        static let plain = "#9aa5ad"
        static let string = "#20272b"
        static let faint = "#6b757c"
        static let grid = "#e3e7ea"
    }

    init(_ report: BenchReport) {
        comparisons = report.comparisons().filter { $0.ratio.isFinite && $0.ratio > 0 }
        let settings = report.settings
        let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        title =
            "Hearth \(HearthVersion.string) beside others: medians of \(settings.runs) runs of "
            + "\(BenchReport.string(settings.seconds)) s, \(cores) cores"
    }

    // MARK: Scale

    /// The powers of ten around all shown values.
    private var decades: ClosedRange<Int> {
        let shown = comparisons.flatMap { [$0.ratio, $0.bar ?? 1, 0.2, 5] }.map { log10($0) }
        return Int(floor(shown.min() ?? -1))...Int(ceil(shown.max() ?? 1))
    }

    private func x(_ ratio: Double) -> Double {
        let (low, high) = (Double(decades.lowerBound), Double(decades.upperBound))
        return Self.labelEnd + (log10(ratio) - low) / (high - low) * (Self.plotEnd - Self.labelEnd)
    }

    // MARK: Picture

    func svg() -> String {
        var body = ""
        var y = Self.top
        var workload = ""
        for comparison in comparisons {
            if comparison.workload != workload {
                y += workload.isEmpty ? 0 : Self.groupGap
                workload = comparison.workload
                body += Self.string(12, y + 14, workload, weight: "bold")
            }
            body += row(comparison, y)
            y += Self.rowHeight
        }
        let height = y + 40
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.number(Self.width))" height="\(Self.number(height))" \
            viewBox="0 0 \(Self.number(Self.width)) \(Self.number(height))" font-family="sans-serif" font-size="12">
            <title>\(Self.escaped(title))</title>
            <rect width="100%" height="100%" fill="white"/>
            \(Self.string(12, 26, title, size: 15, weight: "bold"))\(legend())\(grid(to: y))\(body)</svg>

            """
    }

    private func row(_ comparison: BenchComparison, _ y: Double) -> String {
        let (one, end) = (x(1), x(comparison.ratio))
        let colour =
            switch comparison.isMet {
            case nil: Colour.plain
            case true?: Colour.met
            case false?: Colour.missed
            }
        // A bar of length zero would be invisible.
        let length = max(1.5, abs(end - one))
        var string = Self.string(
            Self.labelEnd - 10, y + 14, "\(comparison.base), \(comparison.metric)", anchor: "end", fill: Colour.faint)
        string += Self.rectangle(min(one, end), y + 3, length, Self.rowHeight - 6, colour)
        if let bar = comparison.bar { string += Self.mark(x(bar), y + 1, Self.rowHeight - 2) }
        let wanted = comparison.wanted.map { "  (\($0))" } ?? ""
        return string + Self.string(Self.valueStart, y + 14, comparison.value + wanted)
    }

    private func grid(to bottom: Double) -> String {
        decades.map { decade in
            let decadeX = x(pow(10, Double(decade)))
            let label =
                decade >= 0
                ? "1" + String(repeating: "0", count: decade) : "0." + String(repeating: "0", count: -decade - 1) + "1"
            return Self.line(decadeX, Self.top - 8, decadeX, bottom + 6, decade == 0 ? Colour.faint : Colour.grid)
                + Self.string(decadeX, bottom + 22, label + "×", anchor: "middle", fill: Colour.faint)
        }.joined()
    }

    private func legend() -> String {
        let entries = [
            (Colour.met, "reaches its bar"), (Colour.missed, "misses it"), (Colour.plain, "no requirement"),
        ]
        var string = ""
        var left = 12.0
        for (colour, label) in entries {
            string += Self.rectangle(left, 46, 14, 12, colour) + Self.string(left + 20, 56, label)
            left += 130
        }
        return string + Self.mark(left + 4, 43, 18)
            + Self.string(left + 16, 56, "the bar; right of 1× Hearth is better than what it is compared with")
    }

    // MARK: Elements

    private static func string(
        _ x: Double, _ y: Double, _ string: String, size: Int = 12, weight: String = "normal", anchor: String = "start",
        fill: String = Colour.string
    ) -> String {
        "<text x=\"\(number(x))\" y=\"\(number(y))\" font-size=\"\(size)\" font-weight=\"\(weight)\" "
            + "text-anchor=\"\(anchor)\" fill=\"\(fill)\">\(escaped(string))</text>\n"
    }

    private static func rectangle(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ fill: String) -> String
    {
        "<rect x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(width))\" height=\"\(number(height))\" "
            + "fill=\"\(fill)\"/>\n"
    }

    private static func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ stroke: String) -> String {
        "<line x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" y2=\"\(number(y2))\" "
            + "stroke=\"\(stroke)\"/>\n"
    }

    private static func mark(_ x: Double, _ y: Double, _ height: Double) -> String {
        rectangle(x - 1.5, y, 3, height, Colour.string)
    }

    /// With one decimal, which is finer than a screen's resolution.
    private static func number(_ number: Double) -> String { "\((number * 10).rounded() / 10)" }

    private static func escaped(_ string: String) -> String {
        string.map { character in
            switch character {
            case "&": "&amp;"
            case "<": "&lt;"
            case ">": "&gt;"
            default: String(character)
            }
        }.joined()
    }
}
