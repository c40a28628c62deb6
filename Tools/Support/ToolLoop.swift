import HearthModel
import HearthNetwork

package enum ToolLoop {
    /// An event loop that runs. Whoever asks for it ends it.
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
