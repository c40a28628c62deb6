import Glibc
import HearthConcurrency
import HearthModel

/// Writes lines to a file descriptor on its own thread, the only one that waits for the reader.
///
/// Lines that the reader does not take are buffered up to a limit; lines beyond it are dropped and counted. When the
/// reader continues, one line reports the number of dropped lines.
///
/// `@unchecked Sendable`: the monitor guards all state.
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

    /// - Parameter report: the line that reports the number of dropped lines.
    init(_ descriptor: Int32, report: @escaping @Sendable (Int) -> [UInt8]) {
        self.descriptor = descriptor
        self.report = report
    }

    /// Takes one complete line.
    func write(_ line: [UInt8]) {
        monitor.lock()
        defer { monitor.unlock() }
        if bytes + line.count > Limits.logQueueBytesMax || !startThread() {
            droppedCount += 1
            return
        }
        lines.append(line)
        bytes += line.count
        // A writing thread checks the queue again afterwards.
        if !isWriting { monitor.signal() }
    }

    /// Lines that were dropped and not reported yet.
    var dropped: Int { monitor.withLock { droppedCount } }

    /// Waits until everything is written, or for a short time when nobody reads it.
    /// - Returns: whether everything is written.
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

    /// All buffered lines, as one piece.
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
                    // The parent process may share the descriptor with a program that needs it in blocking mode.
                    var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = Glibc.poll(&poll, 1, -1)
                    continue
                }
                // The log itself has failed: there is nowhere to report that.
                if count <= 0 { return }
                rest = rest.dropFirst(count)
            }
        }
    }
}
