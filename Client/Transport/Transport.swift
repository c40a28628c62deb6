import HearthModel
import Synchronization

/// The thread of the transport, as its users hold it: channels, HTTP clients and raw connections are made on one.
///
/// It ends when the last of its users lets it go, or with `shutDown`.
package final class Transport: Sendable {
    let loop: TransportLoop

    /// - Throws: RESOURCE_EXHAUSTED or UNAVAILABLE when the system gives no thread or libcurl cannot be used.
    package init(name: String = "hearth-network") throws(Status) {
        loop = try TransportLoop(name: name)
        try loop.start()
    }

    deinit { loop.stop() }

    /// Ends all calls, streams and connections with CANCELLED, frees the connections, and waits for the thread. Nothing
    /// is delivered afterwards. Again is harmless. On the transport's own thread it can't wait, but all that has to be
    /// delivered is delivered before it returns.
    package func shutDown() {
        loop.stop()
        loop.waitForEnd()
    }

    /// Counts of what is in use at this moment.
    package var statistics: TransportStatistics {
        TransportStatistics(
            transfers: loop.counters.transfers.load(ordering: .relaxed),
            sockets: loop.counters.sockets.load(ordering: .relaxed),
            socketsOpened: loop.counters.socketsOpened.load(ordering: .relaxed),
            turns: loop.counters.turns.load(ordering: .relaxed))
    }
}

package struct TransportStatistics: Sendable, Equatable {
    /// Requests, streams and raw connections that libcurl has under way.
    package var transfers: Int
    /// Open sockets, the idle ones included.
    package var sockets: Int
    /// Sockets that were opened since the beginning.
    package var socketsOpened: Int
    /// How often the thread has awoken.
    package var turns: Int
}

/// Counted by the transport's thread, read by any.
final class TransportCounters: Sendable {
    let transfers = Atomic<Int>(0)
    let sockets = Atomic<Int>(0)
    let socketsOpened = Atomic<Int>(0)
    let turns = Atomic<Int>(0)
    /// Easy handles that exist in the whole process, to find leaks.
    static let handles = Atomic<Int>(0)
}
