import Glibc
import HearthConcurrency
import HearthModel

/// Writes lines to a file descriptor on a thread of its own, which alone waits for whoever reads there.
///
/// What that reader doesn't take gathers up to a bound; lines beyond it are dropped and counted, and when the reader goes
/// on, one line says how many there were.
///
/// `@unchecked Sendable`: the monitor guards all state.
final class LogWriter: @unchecked Sendable {
    private let monitor = Monitor()
    private var lines: [[UInt8]] = []
    private var bytes = 0
    private var droppedCount = 0
    private var isWriting = false
    private var hasThread = false
    private let descriptor: Int32
    private let report: @Sendable (Int) -> [UInt8]

    /// - Parameter report: the line that says how many were dropped.
    init(_ descriptor: Int32, report: @escaping @Sendable (Int) -> [UInt8]) {
        self.descriptor = descriptor
        self.report = report
    }

    /// Takes one whole line.
    func write(_ line: [UInt8]) {
        monitor.lock()
        defer { monitor.unlock() }
        if bytes + line.count > Limits.logQueueBytesMax || !startThread() {
            droppedCount += 1
            return
        }
        lines.append(line)
        bytes += line.count
        // The thread that writes looks again afterwards.
        if !isWriting { monitor.signal() }
    }

    /// Lines that were dropped and not reported yet.
    var dropped: Int { monitor.withLock { droppedCount } }

    /// Waits until everything is written, or for a moment when nobody reads it.
    /// - Returns: whether it is.
    @discardableResult
    func flush(milliseconds: Int = 1000) -> Bool {
        let deadline = MonotonicTime.now.advanced(milliseconds: milliseconds)
        monitor.lock()
        defer { monitor.unlock() }
        while isWriting || !lines.isEmpty {
            if MonotonicTime.now >= deadline { return false }
            monitor.wait(until: deadline)
        }
        return true
    }

    /// The thread lives as long as the process. The lock must be held.
    private func startThread() -> Bool {
        if hasThread { return true }
        guard let thread = NamedThread.start("hearth-log", { [self] in run() }) else { return false }
        thread.detach()
        hasThread = true
        return true
    }

    private func run() {
        while true { Self.write(next(), to: descriptor) }
    }

    /// What has gathered, as one piece.
    private func next() -> [UInt8] {
        monitor.lock()
        defer { monitor.unlock() }
        isWriting = false
        if lines.isEmpty, droppedCount == 0 { monitor.signal() }
        while lines.isEmpty, droppedCount == 0 { monitor.wait() }
        isWriting = true
        if droppedCount > 0 {
            lines.append(report(droppedCount))
            droppedCount = 0
        }
        defer {
            lines = []
            bytes = 0
        }
        return lines.count == 1 ? lines[0] : Array(lines.joined())
    }

    private static func write(_ piece: [UInt8], to descriptor: Int32) {
        piece.withUnsafeBytes { buffer in
            var rest = buffer[...]
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN {
                    // Whoever started us shares it with a program that doesn't wait.
                    var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = Glibc.poll(&poll, 1, -1)
                    continue
                }
                // There is nowhere to complain to.
                if count <= 0 { return }
                rest = rest.dropFirst(count)
            }
        }
    }
}
