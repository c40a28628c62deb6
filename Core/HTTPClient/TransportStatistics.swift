import Synchronization

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
package final class TransportCounters: Sendable {
    package let transfers = Atomic<Int>(0)
    package let sockets = Atomic<Int>(0)
    package let socketsOpened = Atomic<Int>(0)
    package let ticks = Atomic<Int>(0)
    /// Easy handles that exist in the whole process, to detect leaks.
    package static let handles = Atomic<Int>(0)
}
