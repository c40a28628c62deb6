import HearthModel
import Synchronization

/// The users' handle of the transport's thread: channels, HTTP clients and raw connections are created on one.
///
/// It ends when its last user releases it, or with `shutDown`.
package final class Transport: Sendable {
    let loop: TransportLoop

    /// - Throws: RESOURCE_EXHAUSTED or UNAVAILABLE when the system provides no thread or libcurl cannot be used.
    package init(name: String = "hearth-network") throws(Status) {
        loop = try TransportLoop(name: name)
        try loop.start()
    }

    deinit { loop.stop() }

    /// Ends all calls, streams and connections with CANCELLED, frees the connections, and waits for the thread. No
    /// event is delivered afterwards. Repeated calls have no effect. On the transport's own thread it cannot wait, but
    /// all pending events are delivered before it returns.
    package func shutDown() {
        loop.stop()
        loop.waitForEnd()
    }

    /// The numbers of objects in use at this moment.
    package var statistics: TransportStatistics {
        TransportStatistics(
            transfers: loop.counters.transfers.load(ordering: .relaxed),
            sockets: loop.counters.sockets.load(ordering: .relaxed),
            socketsOpened: loop.counters.socketsOpened.load(ordering: .relaxed),
            ticks: loop.counters.ticks.load(ordering: .relaxed))
    }
}

package struct TransportStatistics: Sendable, Equatable {
    /// Running requests, streams and raw connections in libcurl.
    package var transfers: Int
    /// Open sockets, including idle ones.
    package var sockets: Int
    /// Sockets that were opened since the start.
    package var socketsOpened: Int
    /// The number of the thread's wake-ups.
    package var ticks: Int
}

/// Written by the transport's thread, read by any thread.
final class TransportCounters: Sendable {
    let transfers = Atomic<Int>(0)
    let sockets = Atomic<Int>(0)
    let socketsOpened = Atomic<Int>(0)
    let ticks = Atomic<Int>(0)
    /// Easy handles that exist in the whole process, to detect leaks.
    static let handles = Atomic<Int>(0)
}
