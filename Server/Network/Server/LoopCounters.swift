import Synchronization

/// A counter with one writing thread and any readers: no locked instruction, only plain loads and stores.
struct LoopCounter: ~Copyable {
    private let value = Atomic<Int>(0)

    borrowing func add(_ amount: Int) {
        value.store(value.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    borrowing func set(_ amount: Int) { value.store(amount, ordering: .relaxed) }

    var current: Int { value.load(ordering: .relaxed) }
}

/// The counters of one loop. Sendable because only its loop writes each.
package final class LoopCounters: Sendable {
    package init() {}

    let connectionsAccepted = LoopCounter()
    let connectionsOpen = LoopCounter()
    let connectionsRefused = LoopCounter()
    let connectionsDisplaced = LoopCounter()
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
    let tlsHandshakesOpen = LoopCounter()
    let tlsHandshakesWaiting = LoopCounter()
    let tlsConnectionsOpen = LoopCounter()
    let tlsPartialRecords = LoopCounter()

    func add(to sum: inout NetworkStatistics) {
        sum.connectionsAccepted += connectionsAccepted.current
        sum.connectionsOpen += connectionsOpen.current
        sum.connectionsRefused += connectionsRefused.current
        sum.connectionsDisplaced += connectionsDisplaced.current
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
        sum.tlsHandshakesOpen += tlsHandshakesOpen.current
        sum.tlsHandshakesWaiting += tlsHandshakesWaiting.current
        sum.tlsConnectionsOpen += tlsConnectionsOpen.current
        sum.tlsPartialRecords += tlsPartialRecords.current
    }
}
