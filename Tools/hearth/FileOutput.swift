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
