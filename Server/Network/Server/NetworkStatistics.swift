import Synchronization

/// A server's counters, summed over its loops.
package struct NetworkStatistics: Sendable, Equatable {
    package var connectionsAccepted = 0
    package var connectionsOpen = 0
    /// Closed immediately: too many connections, or plaintext on a TLS port.
    package var connectionsRefused = 0
    package var streamsOpen = 0
    package var httpRequests = 0
    package var grpcCalls = 0
    package var bytesReceived = 0
    package var bytesSent = 0
    /// Connections and streams closed because a peer took too long.
    package var timeouts = 0
    /// Connections closed with ENHANCE_YOUR_CALM: resets or control frames beyond the limits.
    package var abuses = 0
    /// Requests that violated the protocol or a size limit.
    package var badRequests = 0
    package var webSocketsOpened = 0
    package var webSocketsOpen = 0
    package var webSocketMessagesReceived = 0
    package var webSocketMessagesSent = 0

    @inlinable package init() {}
}

/// A counter with one writing thread and any readers: no locked instruction, only plain loads and stores.
struct LoopCounter: ~Copyable {
    private let value = Atomic<Int>(0)

    borrowing func add(_ amount: Int) {
        value.store(value.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    var current: Int { value.load(ordering: .relaxed) }
}

/// The counters of one loop. Sendable because only its loop writes each.
package final class LoopCounters: Sendable {
    @inlinable package init() {}

    let connectionsAccepted = LoopCounter()
    let connectionsOpen = LoopCounter()
    let connectionsRefused = LoopCounter()
    let streamsOpen = LoopCounter()
    let httpRequests = LoopCounter()
    let grpcCalls = LoopCounter()
    let bytesReceived = LoopCounter()
    let bytesSent = LoopCounter()
    let timeouts = LoopCounter()
    let abuses = LoopCounter()
    let badRequests = LoopCounter()
    let webSocketsOpened = LoopCounter()
    let webSocketsOpen = LoopCounter()
    let webSocketMessagesReceived = LoopCounter()
    let webSocketMessagesSent = LoopCounter()

    func add(to sum: inout NetworkStatistics) {
        sum.connectionsAccepted += connectionsAccepted.current
        sum.connectionsOpen += connectionsOpen.current
        sum.connectionsRefused += connectionsRefused.current
        sum.streamsOpen += streamsOpen.current
        sum.httpRequests += httpRequests.current
        sum.grpcCalls += grpcCalls.current
        sum.bytesReceived += bytesReceived.current
        sum.bytesSent += bytesSent.current
        sum.timeouts += timeouts.current
        sum.abuses += abuses.current
        sum.badRequests += badRequests.current
        sum.webSocketsOpened += webSocketsOpened.current
        sum.webSocketsOpen += webSocketsOpen.current
        sum.webSocketMessagesReceived += webSocketMessagesReceived.current
        sum.webSocketMessagesSent += webSocketMessagesSent.current
    }
}
