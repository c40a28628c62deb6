import HearthModel
import HearthNetwork

package enum ToolLoop {
    /// A running event loop. The caller stops it.
    package static func start() throws(ToolFailure) -> EventLoop {
        do throws(Status) {
            let loop = try EventLoop()
            try loop.start()
            return loop
        } catch {
            throw ToolFailure(.software, error.message)
        }
    }
}
