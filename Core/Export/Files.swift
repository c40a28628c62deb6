import Glibc
import HearthModel

/// A stream of bytes with a name for errors.
package protocol ByteSource {
    /// For errors: the file's path.
    var name: String { get }
    /// Fills the buffer from its start.
    /// - Returns: the number of bytes; 0 at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(Status) -> Int
}

/// Bytes in memory, for tests and fuzzing.
package final class MemorySource: ByteSource {
    package let name: String
    private let bytes: [UInt8]
    private var position = 0

    package init(_ bytes: [UInt8], name: String = "memory") {
        self.bytes = bytes
        self.name = name
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, bytes.count - position)
        buffer.copyBytes(from: bytes[position..<(position + count)])
        position += count
        return count
    }
}

/// A regular file, or standard input.
package final class FileSource: ByteSource {
    package let name: String
    private let descriptor: Int32
    /// nil when it is no regular file.
    package let sizeBytes: Int?

    /// - Throws: when the path cannot be opened, or is no regular file.
    package init(_ path: String) throws(Status) {
        name = path
        // A FIFO must not block the open.
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 { throw FileFailure.status("read", path) }
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        sizeBytes = isFile ? Int(status.st_size) : nil
        if !isFile { throw .invalidArgument("\(path) is not a file.") }
    }

    /// Standard input.
    package init() {
        name = "standard input"
        descriptor = STDIN_FILENO
        sizeBytes = nil
    }

    deinit { if descriptor > STDIN_FILENO { close(descriptor) } }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(Status) -> Int {
        while true {
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            if errno != EINTR { throw FileFailure.status("read", name) }
        }
    }

    /// The content of a small file.
    package static func contents(_ path: String, sizeBytesMax: Int) throws(Status) -> [UInt8] {
        let source = try FileSource(path)
        let size = source.sizeBytes ?? 0
        if size > sizeBytesMax { throw .invalidArgument("\(path): its \(size) bytes are more than \(sizeBytesMax).") }
        var bytes = [UInt8](repeating: 0, count: size)
        var filled = 0
        while filled < size {
            let count = try bytes.withMutableBytes { buffer throws(Status) in
                try source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
            }
            if count == 0 { break }
            filled += count
        }
        return Array(bytes[..<filled])
    }
}

/// A new file that is written from its start, with a buffer. Not durable before `finish`.
package final class FileSink {
    package let name: String
    private let descriptor: Int32
    private let isStream: Bool
    private var waiting: [UInt8] = []
    /// Bytes that were written.
    package private(set) var sizeBytes = 0
    private static let pieceBytes = 256 << 10

    /// Creates the file; what had the name, such as a link of somebody else's, has it no more.
    package init(_ path: String) throws(Status) {
        name = path
        isStream = false
        unlink(path)
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
        if descriptor < 0 { throw FileFailure.status("write", path) }
    }

    /// Standard output.
    package init() {
        name = "standard output"
        isStream = true
        descriptor = STDOUT_FILENO
    }

    deinit { if !isStream { close(descriptor) } }

    package func write(_ bytes: [UInt8]) throws(Status) {
        sizeBytes += bytes.count
        waiting.append(contentsOf: bytes)
        if waiting.count >= Self.pieceBytes { try flush() }
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(Status) {
        sizeBytes += bytes.count
        waiting.append(contentsOf: bytes)
        if waiting.count >= Self.pieceBytes { try flush() }
    }

    /// Writes the buffer, durably when it is a file.
    package func finish() throws(Status) {
        try flush()
        if !isStream, fsync(descriptor) != 0 { throw FileFailure.status("write", name) }
    }

    private func flush() throws(Status) {
        var rest = waiting[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw FileFailure.status("write", name) }
            rest = rest.dropFirst(count)
        }
        waiting.removeAll(keepingCapacity: true)
    }
}

/// Errors of files, with their reasons.
enum FileFailure {
    static func status(_ action: String, _ path: String) -> Status {
        let number = errno
        let code: Status.Code =
            switch number {
            case ENOENT, ENOTDIR: .notFound
            case EACCES, EPERM, EROFS: .permissionDenied
            case ENOSPC, EDQUOT, EFBIG: .resourceExhausted
            case ELOOP, ENAMETOOLONG: .invalidArgument
            default: .internal
            }
        return Status(code, "Cannot \(action) \(path): \(String(cString: strerror(number))).")
    }
}

extension [UInt8] {
    /// `withUnsafeMutableBytes` for bodies that throw `Status`.
    mutating func withMutableBytes<T>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Status) -> T
    ) throws(Status) -> T {
        let result = withUnsafeMutableBytes { buffer -> Result<T, Status> in
            do throws(Status) { return .success(try body(buffer)) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
