import HearthToolSupport
import Glibc

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
