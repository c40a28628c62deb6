import Synchronization

/// What a server has done so far, summed over its loops.
public struct NetworkStatistics: Sendable, Equatable {
    public var connectionsAccepted = 0
    public var connectionsOpen = 0
    /// Closed at once: too many, or plaintext on a TLS port.
    public var connectionsRefused = 0
    public var streamsOpen = 0
    public var httpRequests = 0
    public var grpcCalls = 0
    public var bytesReceived = 0
    public var bytesSent = 0
    /// Connections and streams given up because a peer took too long.
    public var timeouts = 0
    /// Connections told to calm down: resets or control frames beyond the limits.
    public var abuses = 0
    /// Requests that broke the protocol or a size limit.
    public var badRequests = 0
    public var webSocketsOpened = 0
    public var webSocketsOpen = 0
    public var webSocketMessagesReceived = 0
    public var webSocketMessagesSent = 0

    public init() {}
}

/// A counter that one thread changes and any may read: no locked instruction, only plain loads and stores.
struct LoopCounter: ~Copyable {
    private let value = Atomic<Int>(0)

    borrowing func add(_ amount: Int) {
        value.store(value.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    var current: Int { value.load(ordering: .relaxed) }
}

/// The counters of one loop. Sendable because each is written by its loop only.
final class LoopCounters: Sendable {
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
