import Glibc

/// The two streams of a program, without the buffers and the shared state of the C library.
package enum Output {
    /// Writes to standard output.
    package static func line(_ string: String) { write(string + "\n", to: STDOUT_FILENO) }

    package static func string(_ string: String) { write(string, to: STDOUT_FILENO) }

    package static func error(_ string: String) { write(string + "\n", to: STDERR_FILENO) }

    private static func write(_ string: String, to descriptor: Int32) {
        var bytes = Array(string.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            // The error cannot be reported anywhere.
            if count <= 0 { return }
            bytes = bytes.dropFirst(count)
        }
    }
}
