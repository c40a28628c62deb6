import HearthModel
import Synchronization

/// The streams that clients hold open, so that a server which shuts down can end them: on their own they never would.
package final class OpenStreams: Sendable {
    package init() {}

    private struct State {
        var isClosed = false
        var ends: [ObjectIdentifier: @Sendable (Status) -> Void] = [:]
    }

    private let state = Mutex(State())

    private static let shutdown = Status.unavailable("The server is shutting down.")

    /// - Parameter end: ends the stream; called once at most, from any thread.
    package func add(_ call: AnyObject, end: @escaping @Sendable (Status) -> Void) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.ends[ObjectIdentifier(call)] = end }
            return state.isClosed
        }
        if isClosed { end(Self.shutdown) }
    }

    package func remove(_ call: AnyObject) {
        state.withLock { $0.ends[ObjectIdentifier(call)] = nil }
    }

    /// Ends all streams with UNAVAILABLE, whereupon clients go on with another server or later; and those that come yet.
    package func close() {
        let ends = state.withLock { state in
            state.isClosed = true
            defer { state.ends = [:] }
            return Array(state.ends.values)
        }
        for end in ends { end(Self.shutdown) }
    }
}
