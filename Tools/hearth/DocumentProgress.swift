import Glibc
import HearthConcurrency
import HearthToolSupport

/// Reports the progress of an export or an import on a terminal's standard error, four times a second on one line, and
/// its end as the last line wherever standard error goes.
///
/// `@unchecked Sendable`: the monitor guards the state.
final class DocumentProgress: @unchecked Sendable {
    private let verb: String
    private let isQuiet: Bool
    private let isTerminal: Bool
    private let monitor = Monitor()
    private let start = MonotonicTime.now
    private var shownAt = MonotonicTime.now
    private var hasShown = false
    private var total: Int?

    /// - Parameter verb: `exported`.
    init(_ verb: String, isQuiet: Bool) {
        self.verb = verb
        self.isQuiet = isQuiet
        isTerminal = isatty(STDERR_FILENO) == 1
    }

    /// Whether a total would be shown.
    var isShown: Bool { isTerminal && !isQuiet }

    func setTotal(_ total: Int) { monitor.withLock { self.total = total } }

    /// Call often: the line is written when it is due.
    func update(documents: Int, bytes: Int) {
        guard isShown else { return }
        monitor.withLock {
            let now = MonotonicTime.now
            guard shownAt.advanced(milliseconds: 250) <= now else { return }
            shownAt = now
            hasShown = true
            write("\r\u{1B}[K" + line(documents, bytes, seconds: Double(now.nanoseconds - start.nanoseconds) / 1e9))
        }
    }

    private func line(_ documents: Int, _ bytes: Int, seconds: Double) -> String {
        let rate = Double(documents) / max(seconds, 0.001)
        var line = "\(verb) \(Self.grouped(documents))"
        if let total { line += " of ~\(Self.grouped(total))" }
        line += " documents, \(Self.size(bytes)), \(Self.grouped(Int(rate)))/s"
        if let total, total > documents, rate >= 1 {
            let left = Int(Double(total - documents) / rate)
            line += ", \(left / 60):\(left % 60 < 10 ? "0" : "")\(left % 60) left"
        }
        return line
    }

    /// The last line.
    func finish(_ string: String) {
        monitor.withLock {
            if hasShown { write("\r\u{1B}[K") }
            hasShown = false
            if !isQuiet { write(string + "\n") }
        }
    }

    /// Ends the line before an error is printed.
    func clear() {
        monitor.withLock {
            if hasShown { write("\r\u{1B}[K") }
            hasShown = false
        }
    }

    private func write(_ string: String) {
        var bytes = Array(string.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count <= 0 { return }
            bytes = bytes.dropFirst(count)
        }
    }

    // MARK: Numbers

    /// `1,200,000`
    static func grouped(_ number: Int) -> String {
        var digits = Array(String(number))
        var position = digits.count - 3
        while position > 0 {
            digits.insert(",", at: position)
            position -= 3
        }
        return String(digits)
    }

    /// `21.6 kB`, `151 MB`
    static func size(_ bytes: Int) -> String {
        if bytes < 1000 { return "\(bytes) B" }
        var tenths = bytes / 100
        for unit in ["kB", "MB", "GB"] {
            if tenths < 1000 { return "\(tenths / 10).\(tenths % 10) \(unit)" }
            if tenths < 10_000 || unit == "GB" { return "\(tenths / 10) \(unit)" }
            tenths /= 1000
        }
        return "\(bytes) B"
    }

    /// `60 documents`, `1 file`
    static func count(_ number: Int, _ word: String) -> String {
        "\(grouped(number)) \(word)\(number == 1 ? "" : "s")"
    }
}
