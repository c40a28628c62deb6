import HearthLoadClient
import HearthModel
import HearthNetwork

/// One episode of random traffic in one thread: a server and its clients over simulated sockets, in virtual time. The seed
/// determines all of it.
///
/// A step is a tick of the loop. Before it the clients do something; in it the sockets move as many bytes as chance wants.
/// At the end everything that was begun must end, whole and in order, and the server must hold nothing.
package final class TrafficSimulation {
    /// Counts of one or more episodes.
    package struct Counts: Equatable, Sendable {
        package var steps = 0
        /// What ended well.
        package var whole: [Exchange.Carrier: Int] = [:]
        package var failed = 0
        package var cancelled = 0
        package var bytes = 0

        package init() {}

        package mutating func add(_ other: Counts) {
            steps += other.steps
            whole.merge(other.whole) { $0 + $1 }
            failed += other.failed
            cancelled += other.cancelled
            bytes += other.bytes
        }
    }

    package enum ConnectionKind: Int { case http2, http1, webSocket }

    private final class Connection {
        let client: any TrafficClient
        let ends: [SimulatedEnd]

        init(_ client: any TrafficClient, _ ends: [SimulatedEnd]) {
            self.client = client
            self.ends = ends
        }
    }

    private final class Clock {
        var nanoseconds: UInt64 = 1_000_000_000
        /// How much passes when somebody looks: work that takes its time uses up a tick's slice.
        var nanosecondsPerLook: UInt64 = 0
    }

    private let choices: Choices
    private let kinds: [ConnectionKind]
    private let clock = Clock()
    private let record = TrafficRecord()
    private let server: SimulatedServer
    private var connections: [Connection] = []
    private var counts = Counts()
    private let connectionsMax: Int

    /// Ticks without any progress after which something has stalled. It covers the server's shortest waits.
    private static let idleTicksMax = 3_000
    private static let closingTicksMax = 10_000

    package static let allKinds: [ConnectionKind] = [
        .http2, .http2, .http2, .http2, .http2, .http2, .http1, .http1, .http1, .webSocket,
    ]

    /// - Parameter kinds: of the connections; repeated ones are more frequent.
    package init(
        _ choices: Choices,
        kinds: [ConnectionKind] = allKinds
    ) throws(Status) {
        self.choices = choices
        self.kinds = kinds
        let clock = clock
        clock.nanosecondsPerLook = choices.pick([0, 0, 1_000, 50_000, 400_000])
        connectionsMax = choices.between(1...8)
        record.compressionThresholdBytes = choices.pick([nil, 0, 1_000])
        var limits = NetworkLimits()
        // Smaller ones make others wait; none of them refuses what the clients do.
        if choices.chance(40) { limits.answerHighWaterBytes = max(1, choices.size(atMost: 300 << 10)) }
        if choices.chance(40) { limits.answerLowWaterBytes = choices.below(limits.answerHighWaterBytes) }
        limits.answerLowWaterBytes = min(limits.answerLowWaterBytes, limits.answerHighWaterBytes - 1)
        if choices.chance(30) { limits.connectionHighWaterBytes = choices.between(1...2 << 20) }
        if choices.chance(40) { limits.streamWindowBytes = max(1_000, choices.size(atMost: 1 << 20)) }
        if choices.chance(30) { limits.connectionWindowBytes = 65_535 + choices.size() }
        if choices.chance(30) { limits.encoderTableBytes = choices.pick([0, 512, 4_096]) }
        var configuration = ServerConfiguration(limits: limits)
        configuration.grpcCompressionThresholdBytes = choices.pick([nil, nil, 0, 1_000, 20_000])
        let handler = PlannedHandler(record)
        server = try SimulatedServer(configuration: configuration, http: handler, grpc: handler) {
            clock.nanoseconds += clock.nanosecondsPerLook
            return clock.nanoseconds
        }
    }

    /// - Parameter steps: how long the clients begin new things.
    package func run(steps: Int) throws -> Counts {
        try server.loop.simulate {
            server.start()
            for _ in 0..<steps where !choices.isExhausted {
                act()
                tick()
                try check()
            }
            try finish()
        }
        counts.whole = record.whole
        counts.failed = record.failed
        counts.cancelled = record.cancelled
        counts.bytes = record.bytes
        return counts
    }

    private func check() throws {
        if let failure = record.failure { throw TrafficFailure("\(failure)\n(\(server.statistics))") }
    }

    // MARK: Steps

    private func act() {
        if connections.isEmpty || (connections.count < connectionsMax && choices.isOne(in: 25)) { connect() }
        for _ in 0..<choices.between(0...3) {
            let client = choices.pick(connections).client
            switch choices.below(400) {
            case 0: client.close()
            case 1..<90: client.begin()
            default: client.act()
            }
        }
        connections.removeAll { $0.client.isClosed && $0.ends.allSatisfy(\.isClosed) }
    }

    private func connect() {
        func capacity() -> Int { choices.isOne(in: 4) ? choices.between(1...2_000) : choices.size() + 1 }
        func pace() -> SimulatedEnd.Pace { choices.pick([.all, .all, .any, .any, .few]) }
        let there = SimulatedPipe(capacity: capacity())
        let back = SimulatedPipe(capacity: capacity())
        let serverEnd = SimulatedEnd(input: there, output: back, pace: pace(), choices)
        let clientEnd = SimulatedEnd(input: back, output: there, pace: pace(), choices)
        server.accept(serverEnd)
        let client: any TrafficClient
        switch choices.pick(kinds) {
        case .http2:
            var configuration = HTTP2Client.Configuration(host: "h", port: 80)
            configuration.streamWindowBytes = choices.chance(20) ? 0 : choices.size(atMost: 2 << 20)
            configuration.connectionWindowBytes = 65_535 + choices.size(atMost: 4 << 20)
            client = HTTP2TrafficClient(
                .simulated(configuration, over: clientEnd, on: server.loop), record, choices)
        case .http1:
            client = HTTP1TrafficClient(.simulated(over: clientEnd, on: server.loop), record, choices)
        case .webSocket:
            client = WebSocketTrafficClient(.simulated(over: clientEnd, on: server.loop), record, choices)
        }
        connections.append(Connection(client, [serverEnd, clientEnd]))
    }

    private func tick(isHurrying: Bool = false) {
        counts.steps += 1
        clock.nanoseconds += isHurrying ? 200_000 : choices.pick([0, 20_000, 200_000, 1_000_000, 3_000_000])
        server.loop.simulateTick {
            guard !connections.isEmpty else { return }
            let first = choices.below(connections.count)
            for index in connections.indices {
                let connection = connections[(first + index) % connections.count]
                for end in connection.ends where isHurrying || choices.chance(75) { end.report() }
            }
        }
    }

    // MARK: The end

    /// Everything that is open must end, and leave nothing.
    private func finish() throws {
        clock.nanosecondsPerLook = min(clock.nanosecondsPerLook, 1_000)
        for connection in connections { for end in connection.ends { end.isHurrying = true } }
        var idleTicks = 0
        var before = progress
        while connections.contains(where: { $0.client.openCount > 0 }) {
            for connection in connections { connection.client.hurry() }
            tick(isHurrying: true)
            try check()
            let after = progress
            idleTicks = after == before ? idleTicks + 1 : 0
            before = after
            guard idleTicks < Self.idleTicksMax else { throw TrafficFailure("stalled: \(openExchanges)") }
        }
        var ticks = 0
        // Resets may still be on their way. What ends with its stream must not last as long as the connection.
        while server.held != SimulatedServer.Held() || server.statistics.streamsOpen > 0 {
            tick(isHurrying: true)
            ticks += 1
            guard ticks < Self.closingTicksMax else {
                throw TrafficFailure("held although nothing is open: \(server.held), \(server.statistics)")
            }
        }
        for connection in connections { connection.client.close() }
        ticks = 0
        while server.statistics.connectionsOpen > 0 {
            tick(isHurrying: true)
            ticks += 1
            guard ticks < Self.closingTicksMax else { throw TrafficFailure("a connection stays: \(server.statistics)") }
        }
        try check()
        let statistics = server.statistics
        guard server.held == SimulatedServer.Held(), statistics.streamsOpen == 0, statistics.webSocketsOpen == 0 else {
            throw TrafficFailure("the server still holds something: \(server.held), \(statistics)")
        }
        // Nothing that the clients do violates anything.
        guard statistics.badRequests == 0, statistics.abuses == 0, statistics.timeouts == 0 else {
            throw TrafficFailure("requests were refused: \(statistics)")
        }
    }

    private var progress: [Int] {
        [record.bytes, record.whole.values.reduce(0, +), record.failed, record.cancelled]
            + connections.flatMap { $0.ends.map(\.receivedBytes) }
    }

    private var openExchanges: String {
        let exchanges = record.exchanges.values.filter { !$0.isFinished }
        return exchanges.prefix(5).map(\.description).joined(separator: "\n")
            + " (\(exchanges.count) in all; \(server.statistics), \(server.held))"
    }
}

/// Many episodes, each with a seed of its own.
package enum TrafficEpisodes {
    /// Runs episodes until `isOver` with the counts so far.
    ///
    /// - Parameters:
    ///   - seed: of the first episode; each has the next number.
    ///   - eachWithin: after so many steps each protocol must have done something. An episode of 300 steps has some four
    ///     connections, and one of ten is a WebSocket.
    ///   - willBegin: called with the seed of each episode, for whoever has to say it if the process ends.
    package static func run(
        from seed: UInt64, steps: Int = 300, kinds: [TrafficSimulation.ConnectionKind] = TrafficSimulation.allKinds,
        eachWithin: Int = 10_000, willBegin: (UInt64) -> Void = { _ in },
        until isOver: (TrafficSimulation.Counts) -> Bool
    ) throws -> TrafficSimulation.Counts {
        var counts = TrafficSimulation.Counts()
        var seed = seed
        while !isOver(counts) {
            willBegin(seed)
            do {
                counts.add(try TrafficSimulation(Choices(seed: seed), kinds: kinds).run(steps: steps))
            } catch {
                throw TrafficFailure("seed \(seed): \(error)")
            }
            seed &+= 1
        }
        if counts.steps >= eachWithin {
            let idle = Exchange.Carrier.allCases.filter { counts.whole[$0, default: 0] == 0 }
            guard idle.isEmpty else {
                throw TrafficFailure("nothing was done over \(idle.map(\.rawValue).joined(separator: ", "))")
            }
        }
        return counts
    }
}
