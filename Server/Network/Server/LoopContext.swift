import Synchronization

/// What the connections of one loop share.
///
/// `@unchecked Sendable`: counters and budget are made for many threads; the table and the options belong to the
/// loop's thread.
final class LoopContext: @unchecked Sendable {
    let loop: EventLoop
    let limits: NetworkLimits
    let counters = LoopCounters()
    let inputBudget: InputBudget
    let http: any HTTPHandler
    let grpc: any GRPCHandler
    let serverHeader: String?
    let compressionThresholdBytes: Int?
    /// For the connections to come.
    var tls: TLSContext?
    let http2Options: HTTP2Options
    let table = ChannelTable()
    /// The header block that is being read; used within one read only.
    let fields = FieldBuffer()
    var isShuttingDown = false
    /// Also those on their way to the loop; the first loop reads it to choose.
    private let connections = Atomic<Int>(0)

    init(
        loop: EventLoop, configuration: ServerConfiguration, tls: TLSContext?, inputBudget: InputBudget,
        http: any HTTPHandler, grpc: any GRPCHandler
    ) {
        self.loop = loop
        limits = configuration.limits
        self.inputBudget = inputBudget
        self.http = http
        self.grpc = grpc
        serverHeader = configuration.serverHeader
        compressionThresholdBytes = configuration.grpcCompressionThresholdBytes
        self.tls = tls
        http2Options = HTTP2Options(limits: configuration.limits)
    }

    var connectionCount: Int { connections.load(ordering: .relaxed) }

    func countConnection(_ change: Int) { connections.add(change, ordering: .relaxed) }

    /// Often enough that the shortest time is kept to a quarter, and never more than 100 times a second.
    var sweepMilliseconds: Int {
        let shortest =
            [
                limits.tlsHandshakeMilliseconds, limits.headMilliseconds, limits.idleHTTP1Milliseconds,
                limits.idleHTTP2Milliseconds, limits.bodyProgressMilliseconds, limits.writeStallMilliseconds,
                limits.pingAfterSilenceMilliseconds, limits.pingAnswerMilliseconds, limits.lingerMilliseconds,
            ].min() ?? 1_000
        return max(10, min(1_000, shortest / 4))
    }
}
