import Glibc
import HearthModel

/// Reads small files that people write.
package enum TextFile {
    /// More than any configuration needs.
    static let sizeBytesMax = 16 << 20

    /// The bytes of a file; nil when it does not exist.
    /// - Throws: FAILED_PRECONDITION when it cannot be read or is no regular file: reading a pipe or a device may wait for
    ///   ever. INVALID_ARGUMENT when it is too large.
    package static func read(_ path: String) throws(Status) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 {
            if errno == ENOENT { return nil }
            throw failure(path)
        }
        defer { close(descriptor) }
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw failure(path) }
        if status.st_mode & S_IFMT != S_IFREG {
            throw .failedPrecondition("Cannot read \(path): it is no regular file.")
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0 {
                if errno == EINTR { continue }
                throw failure(path)
            }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            if bytes.count > sizeBytesMax {
                throw .invalidArgument("\(path) is larger than \(sizeBytesMax >> 20) MiB.")
            }
        }
    }

    /// Without the byte order mark that some editors write.
    package static func withoutMark(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
    }

    private static func failure(_ path: String) -> Status {
        .failedPrecondition("Cannot read \(path): \(String(cString: strerror(errno))).")
    }
}
