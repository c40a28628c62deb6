import HearthToolSupport
import Glibc

/// The tool's output: a file, or standard output. Buffers small pieces.
final class FileOutput {
    private let name: String
    private let descriptor: Int32
    private var waiting: [UInt8] = []
    private static let pieceBytes = 256 << 10

    /// - Parameter path: nil or `-` for standard output.
    init(_ path: String?) throws(ToolFailure) {
        name = path ?? "-"
        guard name != "-" else {
            descriptor = STDOUT_FILENO
            return
        }
        descriptor = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        if descriptor < 0 { throw Self.failure("write", name) }
    }

    deinit { if descriptor != STDOUT_FILENO { close(descriptor) } }

    func write(_ bytes: [UInt8]) throws(ToolFailure) {
        waiting += bytes
        if waiting.count >= Self.pieceBytes { try flush() }
    }

    /// Writes the buffer, durably when it is a file.
    func finish() throws(ToolFailure) {
        try flush()
        if descriptor != STDOUT_FILENO, fsync(descriptor) != 0, errno != EINVAL { throw Self.failure("write", name) }
    }

    private func flush() throws(ToolFailure) {
        var rest = waiting[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw Self.failure("write", name) }
            rest = rest.dropFirst(count)
        }
        waiting.removeAll(keepingCapacity: true)
    }

    static func failure(_ action: String, _ name: String) -> ToolFailure {
        let file = name == "-" ? (action == "read" ? "standard input" : "standard output") : name
        return ToolFailure(.data, "Cannot \(action) \(file): \(String(cString: strerror(errno))).")
    }
}

/// The tool's input: a file, or standard input.
final class FileInput {
    private let name: String
    private let descriptor: Int32
    private var piece = [UInt8](repeating: 0, count: 256 << 10)
    /// Bytes that were read.
    private(set) var position = 0
    /// Nil when it is unknown.
    let sizeBytes: Int?

    /// - Parameter path: nil or `-` for standard input.
    init(_ path: String?) throws(ToolFailure) {
        name = path ?? "-"
        descriptor = name == "-" ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { throw FileOutput.failure("read", name) }
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        sizeBytes = isFile ? Int(status.st_size) : nil
    }

    deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

    /// The next piece; empty at the end.
    func read() throws(ToolFailure) -> ArraySlice<UInt8> {
        while true {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw FileOutput.failure("read", name) }
            position += count
            return piece[..<count]
        }
    }

    func readAll(sizeBytesMax: Int) throws(ToolFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = try read()
            if piece.isEmpty { return bytes }
            bytes += piece
            if bytes.count > sizeBytesMax {
                throw ToolFailure(.failed, "The data has more than \(sizeBytesMax >> 20) MiB; import takes any size.")
            }
        }
    }
}

/// Reports the progress of long work on standard error: on a terminal every second on one line, elsewhere a line every
/// ten.
final class ProgressLine {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let start = ProgressLine.seconds()
    private var lastSeconds = ProgressLine.seconds()
    private var hasWritten = false

    private static func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Reports the progress when it is due.
    func update(_ string: () -> String) {
        let now = Self.seconds()
        guard now - lastSeconds >= (isTerminal ? 1 : 10) else { return }
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

    static func megabytes(_ bytes: Int) -> String { "\(bytes / 1_000_000) MB" }
}
