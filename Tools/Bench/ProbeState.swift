import Glibc
import HearthModel
import Synchronization

/// The partial result of a call, shared by the loop and the waiting thread.
final class ProbeState: Sendable {
    private struct State {
        var messages: [[UInt8]] = []
        var status: Status?
    }

    private let state = Mutex(State())

    func add(_ message: [UInt8]) { state.withLock { $0.messages.append(message) } }

    func end(_ status: Status) { state.withLock { $0.status = $0.status ?? status } }

    func wait() -> (Status, [[UInt8]]) {
        while true {
            if let result = state.withLock({ state in state.status.map { ($0, state.messages) } }) { return result }
            usleep(200)
        }
    }
}
