import Glibc

/// Standard output and standard error, without the buffers and the shared state of the C library.
///
/// Foundation's `FileHandle.write(_:)` is not used for them: it ends the process when a write is interrupted by a signal, a disk is
/// full, or the stream is closed or does not wait (`O_NONBLOCK`).
package enum StandardStream {
    /// Writes a string to a descriptor, as far as it takes it: the rest of a string for a full pipe that does not wait is lost.
    ///
    /// - Returns: 0, or the error of the write that failed.
    @discardableResult
    package static func write(_ string: String, to descriptor: Int32) -> Int32 {
        var bytes = Array(string.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return count < 0 ? errno : EIO }
            bytes = bytes.dropFirst(count)
        }
        return 0
    }

    /// Writes a line to standard error.
    package static func error(_ line: String) { write(line + "\n", to: STDERR_FILENO) }
}
