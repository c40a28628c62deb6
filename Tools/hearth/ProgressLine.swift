import Glibc

/// Reports the progress of long work on standard error: on a terminal every second on one line, elsewhere a line every
/// ten.
final class ProgressLine {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let isQuiet: Bool
    private let start = ProgressLine.seconds()
    private var lastSeconds = ProgressLine.seconds()
    private var hasWritten = false

    /// - Parameter isQuiet: nothing is reported.
    init(isQuiet: Bool = false) { self.isQuiet = isQuiet }

    private static func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Reports the progress when it is due.
    func update(_ string: () -> String) {
        let now = Self.seconds()
        guard !isQuiet, now - lastSeconds >= (isTerminal ? 1 : 10) else { return }
        lastSeconds = now
        hasWritten = true
        say(string(), isLast: false)
    }

    /// Reports the end, when the work took long enough.
    func finish(_ string: () -> String) {
        if hasWritten { say(string() + " in \(Int(Self.seconds() - start)) s", isLast: true) }
    }

    private func say(_ string: String, isLast: Bool) {
        let line = isTerminal ? "\r\u{1B}[K\(string)\(isLast ? "\n" : "")" : string + "\n"
        var bytes = Array(line.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count <= 0 { return }
            bytes = bytes.dropFirst(count)
        }
    }
}
