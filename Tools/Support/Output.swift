import Glibc
import HearthModel
import Synchronization

/// The two streams of a program, without the buffers and the shared state of the C library.
package enum Output {
    /// The error of the first write to standard output that failed, or 0.
    private static let firstError = Atomic<Int32>(0)

    /// Writes to standard output.
    package static func line(_ string: String) { write(string + "\n", to: STDOUT_FILENO) }

    package static func string(_ string: String) { write(string, to: STDOUT_FILENO) }

    package static func error(_ string: String) { write(string + "\n", to: STDERR_FILENO) }

    /// For a command whose output is its result: what a full disk has cut off is not a success.
    /// - Throws: 73 when something could not be written to standard output. Not when its reader has gone, or the caller has closed
    ///   it: nobody wants the output then.
    package static func checkWritten() throws(ToolFailure) {
        let error = firstError.load(ordering: .relaxed)
        if error == 0 || error == EPIPE || error == EBADF { return }
        throw ToolFailure(.data, "Cannot write to standard output: \(String(cString: strerror(error))).")
    }

    private static func write(_ string: String, to descriptor: Int32) {
        let error = StandardStream.write(string, to: descriptor)
        // Of standard error nobody can be notified.
        if error != 0, descriptor == STDOUT_FILENO {
            _ = firstError.compareExchange(expected: 0, desired: error, ordering: .relaxed)
        }
    }
}
