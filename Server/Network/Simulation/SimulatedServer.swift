import HearthConcurrency
import HearthModel

/// The connections of one loop without sockets, threads and time: a test decides when which bytes arrive, and how late it
/// is. Everything above the socket is what a `NetworkServer` has.
///
/// `@unchecked Sendable`: used by one thread, within `EventLoop.simulate`.
package final class SimulatedServer: @unchecked Sendable {
    package let loop: EventLoop
    private let context: LoopContext
    private let budget: MemoryBudget
    private let configuration: ServerConfiguration

    /// - Parameter configuration: without TLS; its addresses have no effect.
    package init(
        configuration: ServerConfiguration, http: any HTTPHandler, grpc: any GRPCHandler,
        nanoseconds: @escaping () -> UInt64
    ) throws(Status) {
        self.configuration = configuration
        let bytesMax = configuration.limits.bufferedInputBytesMax
        budget = configuration.receivedBytes ?? MemoryBudget(bytesMax: bytesMax, shareBytesMax: bytesMax)
        loop = try EventLoop(simulatedNanoseconds: nanoseconds)
        context = LoopContext(
            loop: loop, loopCount: 1, configuration: configuration, tls: nil, inputBudget: budget, http: http,
            grpc: grpc)
        context.table.onRemove = { [unowned context] in context.counters.connectionsOpen.add(-1) }
    }

    /// Begins to look for what has timed out, at the intervals of a server.
    package func start() {
        loop.schedule(afterMilliseconds: context.sweepMilliseconds) { [weak self] in
            self?.context.checkTimeouts()
            self?.start()
        }
    }

    /// A client has connected.
    package func accept(_ socket: any SimulatedSocket, from remoteAddress: String = "192.0.2.1:1") {
        context.counters.connectionsAccepted.add(1)
        context.counters.connectionsOpen.add(1)
        let channel = SocketChannel(
            loop: loop, simulated: socket, remoteAddress: remoteAddress, limits: configuration.limits,
            counters: context.counters)
        channel.driver = ServerConnection(channel: channel, context: context)
        context.table.insert(channel)
        _ = channel.start()
    }

    package var statistics: NetworkStatistics {
        var sum = NetworkStatistics()
        context.counters.add(to: &sum)
        return sum
    }

    /// What the server holds for its clients, in bytes. All of it is 0 when every connection is closed.
    package struct Held: Equatable {
        package var input = 0
        package var openRequests = 0
        package var waitingAnswers = 0

        package init() {}
    }

    package var held: Held {
        var held = Held()
        held.input = budget.usedBytes
        held.openRequests = context.openRequests.usedBytes
        held.waitingAnswers = context.waitingAnswerBytes
        return held
    }
}
