import HearthModel

/// The users' handle of the transport's thread: channels, HTTP clients and raw connections are created on one.
///
/// It ends when its last user releases it, or with `shutDown`.
package final class Transport: Sendable {
    package let loop: TransportLoop

    /// - Throws: RESOURCE_EXHAUSTED or UNAVAILABLE when the system provides no thread or libcurl cannot be used.
    /// - Parameter idleConnectionsMax: connections without a request that stay open.
    package init(
        name: String = "hearth-network", idleConnectionsMax: Int = TransportLimits.idleConnectionsMax
    ) throws(Status) {
        loop = try TransportLoop(name: name, idleConnectionsMax: idleConnectionsMax)
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
