import HearthConcurrency
import HearthModel
import HearthTLS
import HearthWebSocket
import Synchronization

/// The shared state of the connections of one loop.
///
/// `@unchecked Sendable`: counters and budget are thread-safe; the table and the options belong to the loop's thread.
final class LoopContext: @unchecked Sendable {
    let loop: EventLoop
    let limits: NetworkLimits
    let counters = LoopCounters()
    let inputBudget: MemoryBudget
    let http: any HTTPHandler
    let grpc: any GRPCHandler
    let compressionThresholdBytes: Int?
    /// For later connections.
    var tls: TLSContext?
    let http2Options: HTTP2Options
    let table = ChannelTable()
    let tlsAdmission: TLSAdmission
    /// For the messages of WebSockets; used within one event only.
    let deflateCodecs = DeflateCodecs()
    let inflations: InflationQueue
    /// The header block that is being read; used within one read only.
    let fields = FieldBuffer()
    var isShuttingDown = false
    /// Response bytes that wait in the connections of this loop.
    private(set) var waitingAnswerBytes = 0
    private let waitingAnswerBytesBound: Int
    /// From a pool that has other users, too: bytes that it does not cover exceed the limit.
    private var answersLoan: MemoryLoan?
    private var isRelieving = false
    private var closedSinceReturn = 0
    private static let closedPerReturn = 512
    var openRequests: OpenRequests
    /// Includes connections that are being passed to the loop; the first loop reads it to choose a loop.
    private let connections = Atomic<Int>(0)

    init(
        loop: EventLoop, loopCount: Int, configuration: ServerConfiguration, tls: TLSContext?,
        inputBudget: MemoryBudget,
        http: any HTTPHandler, grpc: any GRPCHandler
    ) {
        self.loop = loop
        inflations = InflationQueue(loop)
        limits = configuration.limits
        self.inputBudget = inputBudget
        self.http = http
        self.grpc = grpc
        compressionThresholdBytes = configuration.grpcCompressionThresholdBytes
        self.tls = tls
        waitingAnswerBytesBound = configuration.limits.answersBytesMax / loopCount
        answersLoan = configuration.pool.map {
            MemoryLoan($0, ownBytes: Limits.answersOwnBytes / loopCount, keptBytes: 0)
        }
        openRequests = OpenRequests(
            MemoryLoan(
                configuration.pool ?? MemoryPool(bytesMax: Limits.pooledBytesMax),
                ownBytes: Limits.openRequestsOwnBytes / loopCount))
        http2Options = HTTP2Options(limits: configuration.limits)
        tlsAdmission = TLSAdmission(
            loop: loop, loopCount: loopCount, limits: configuration.limits, counters: counters, table: table,
            pool: configuration.pool)
    }

    var connectionCount: Int { connections.load(ordering: .relaxed) }

    func countConnection(_ change: Int) { connections.add(change, ordering: .relaxed) }

    /// What many connections leave is returned to the system.
    func countClosing() {
        closedSinceReturn += 1
        guard closedSinceReturn == LoopContext.closedPerReturn else { return }
        closedSinceReturn = 0
        ProcessMemory.giveBackSoon()
    }

    /// Closes or resets what has timed out. One pass over all connections of the loop costs a few nanoseconds each.
    func checkTimeouts() {
        for channel in table.channels { channel.checkTimeouts(now: loop.now) }
    }

    func heldInput(of channel: SocketChannel) -> HeldInput {
        HeldInput(inputBudget, address: channel.remoteAddress, connection: channel.number)
    }

    // MARK: Answers that wait

    /// Counts response bytes that a connection has queued or, if negative, sent or dropped.
    func countWaitingAnswers(_ change: Int) {
        waitingAnswerBytes += change
        answersLoan?.cover(waitingAnswerBytes, isAdministrator: false)
        guard change > 0, hasTooManyAnswers, !isRelieving else { return }
        isRelieving = true
        relieveLater()
    }

    private var waitingAnswerBytesMax: Int { min(waitingAnswerBytesBound, answersLoan?.allowedBytes ?? .max) }

    /// New requests on connections with waiting responses should wait, and running responses should queue little.
    var hasTooManyAnswers: Bool { waitingAnswerBytes > waitingAnswerBytesMax }

    /// The recommended maximum of waiting bytes of one response. Never below the low-water mark, where it resumes.
    var answerHighWaterBytes: Int { hasTooManyAnswers ? limits.answerLowWaterBytes : limits.answerHighWaterBytes }

    private func relieveLater() {
        loop.schedule(afterMilliseconds: LoopContext.relievingMilliseconds) { [weak self] in self?.relieve() }
    }

    /// Closes connections that hold too many response bytes: first those without progress for the longest time; far
    /// above the limit, those with the most bytes.
    private func relieve() {
        let patience = UInt64(limits.answerPatienceMilliseconds) * 1_000_000
        let now = loop.now
        var waiting = table.channels.compactMap { channel -> (channel: SocketChannel, bytes: Int, since: UInt64)? in
            guard let driver = channel.driver else { return nil }
            let waiting = driver.waitingAnswers
            return waiting.bytes > 0 ? (channel, waiting.bytes, waiting.since) : nil
        }
        waiting.sort { $0.since < $1.since }
        for entry in waiting where waitingAnswerBytes > waitingAnswerBytesMax && entry.since + patience < now {
            giveUp(entry.channel)
        }
        if waitingAnswerBytes > waitingAnswerBytesMax + waitingAnswerBytesMax / 2 {
            waiting.sort { $0.bytes > $1.bytes }
            for entry in waiting where waitingAnswerBytes > waitingAnswerBytesMax { giveUp(entry.channel) }
        }
        isRelieving = hasTooManyAnswers
        if isRelieving { relieveLater() } else { ProcessMemory.giveBackSoon() }
    }

    private func giveUp(_ channel: SocketChannel) {
        guard !channel.isClosed else { return }
        counters.abuses.add(1)
        channel.close()
    }

    /// The interval at which a loop above its limit searches for the connections to close.
    private static let relievingMilliseconds = 50

    /// The check interval: a quarter of the shortest timeout, and at most 100 checks per second.
    var sweepMilliseconds: Int {
        let shortest =
            [
                limits.tlsHandshakeMilliseconds, limits.headMilliseconds, limits.idleHTTP1Milliseconds,
                limits.idleHTTP2Milliseconds, limits.bodyProgressMilliseconds, limits.writeStallMilliseconds,
                limits.pingAfterSilenceMilliseconds, limits.pingAnswerMilliseconds, limits.lingerMilliseconds,
                limits.webSocketPingMilliseconds, limits.webSocketSilenceMilliseconds,
            ].min() ?? 1_000
        return max(10, min(1_000, shortest / 4))
    }
}
