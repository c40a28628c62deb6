import Glibc
import HearthModel
import HearthNetwork

package enum ToolLoop {
    /// A running event loop. The caller stops it.
    ///
    /// From here on a connection that was lost, or a pipe that nobody reads, fails the write (EPIPE) and does not end the process:
    /// OpenSSL writes without MSG_NOSIGNAL.
    package static func start() throws(ToolFailure) -> EventLoop {
        signal(SIGPIPE, SIG_IGN)
        do throws(Status) {
            let loop = try EventLoop()
            try loop.start()
            return loop
        } catch {
            throw ToolFailure(.software, error.message)
        }
    }
}
