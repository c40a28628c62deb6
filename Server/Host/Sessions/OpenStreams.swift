import HearthModel
import Synchronization

/// The open streams of clients. A server that shuts down ends them, because they never end on their own.
package final class OpenStreams: Sendable {
    package init() {}

    private struct State {
        var isClosed = false
        var ends: [ObjectIdentifier: @Sendable (Status) -> Void] = [:]
    }

    private let state = Mutex(State())

    private static let shutdown = Status.unavailable("The server is shutting down.")

    /// - Parameter end: ends the stream; called at most once, from any thread.
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

    /// Ends all streams with UNAVAILABLE, after which clients connect to another server or later, and also all streams
    /// that are added afterwards.
    package func close() {
        let ends = state.withLock { state in
            state.isClosed = true
            defer { state.ends = [:] }
            return Array(state.ends.values)
        }
        for end in ends { end(Self.shutdown) }
    }
}
