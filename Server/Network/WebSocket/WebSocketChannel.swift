import HearthModel
import HearthWebSocket

/// The server's end of a WebSocket. All methods are called on `loop`'s thread, and all callbacks come on it.
///
/// Pings are answered and sent here; so are close frames. A client that doesn't read what it is sent isn't read either,
/// so that what waits stays bounded by what the handler sends of its own accord; `send` says when that is too much.
///
/// `@unchecked Sendable`: guarded by the loop's thread; handlers carry it through closures that come back to it.
package final class WebSocketChannel: @unchecked Sendable {
    private enum State {
        case open
        /// Our close frame is out or on its way; the client's is awaited, and everything else dropped.
        case closing(since: UInt64)
        /// Nothing is read any more.
        case over
    }

    package let loop: EventLoop

    /// A message. Messages that arrive before it is set wait.
    package var onText: (([UInt8]) -> Void)? { didSet { continueLater() } }
    /// Without it a binary message ends the connection with 1003.
    package var onBinary: (([UInt8]) -> Void)?
    /// Called exactly once, whatever ends the connection, and nothing after it. After our own `close` it comes soon,
    /// but not within the call.
    package var onClose: ((WebSocketEnd) -> Void)?
    /// After a `send` that returned false: there is room again.
    package var onWritable: (() -> Void)?
    /// `send` returns false above this many queued bytes.
    var highWaterBytes: Int

    private let channel: SocketChannel
    private let context: LoopContext
    private let input: HeldInput
    private let connection: WebSocketConnection
    private var state = State.open
    private var hasReportedEnd = false
    private var output: OutputQueue
    private var countedBytes = 0
    private var lastAnswerAt: UInt64 = 0
    private var wasAboveHighWater = false

    /// Input that must wait.
    private var leftover: [UInt8] = []
    private var isReadingPaused = false
    private var isReading = false
    private var isContinuationScheduled = false
    private var reservedBytes = 0
    private var hasInputEnded = false

    private var controlFrames: RateLimiter
    private var progress: BodyProgress
    /// When the client was last known to be heard out, or we didn't listen.
    private var heardAt: UInt64
    private var pingedAt: UInt64 = 0

    /// - Parameters:
    ///   - output: what has to leave before, the answer 101 at its end.
    ///   - leftover: bytes that came behind the request.
    init(
        channel: SocketChannel, context: LoopContext, connection: WebSocketConnection, output: OutputQueue,
        leftover: [UInt8]
    ) {
        self.channel = channel
        self.context = context
        input = context.heldInput(of: channel)
        self.connection = connection
        self.output = output
        self.leftover = leftover
        highWaterBytes = context.limits.answerHighWaterBytes
        loop = channel.loop
        let now = channel.loop.now
        controlFrames = RateLimiter(
            burstMax: context.limits.controlFramesBurstMax, perSecondMax: context.limits.controlFramesPerSecondMax,
            now: now)
        progress = BodyProgress(now: now)
        heardAt = now
        context.counters.webSocketsOpened.add(1)
        context.counters.webSocketsOpen.add(1)
        countAnswers()
        channel.flushLater()
    }

    /// `address:port` of the client.
    package var remoteAddress: String { channel.remoteAddress }
    /// Tells the connections of a process apart.
    package var connectionNumber: UInt64 { channel.number }
    package var isSecure: Bool { channel.isSecure }

    /// Messages can be sent.
    package var isOpen: Bool {
        if case .open = state { return true }
        return false
    }

    /// Bytes that wait to be sent, without those that the system has taken.
    package var queuedBytes: Int { output.count }

    // MARK: Output

    /// False: more is queued than should be; wait for `onWritable`. The message is taken in any case, unless the
    /// connection is closed.
    ///
    /// - Parameter text: valid UTF-8.
    @discardableResult
    package func send(string: [UInt8]) -> Bool {
        checkThread()
        guard isOpen else { return false }
        return sendMessage(connection.send(string: string))
    }

    @discardableResult
    package func send(binary: [UInt8]) -> Bool {
        checkThread()
        guard isOpen else { return false }
        return sendMessage(connection.send(binary: binary))
    }

    /// A message that goes to many: framed once, compressed once, kept once.
    @discardableResult
    package func send(_ message: SharedWebSocketMessage) -> Bool {
        checkThread()
        guard isOpen else { return false }
        return sendMessage(connection.send(message))
    }

    private func sendMessage(_ frame: [UInt8]) -> Bool {
        context.counters.webSocketMessagesSent.add(1)
        append(frame)
        guard isAboveHighWater else { return true }
        wasAboveHighWater = true
        return false
    }

    private func append(_ frame: [UInt8]) {
        output.append(frame)
        countAnswers()
        channel.flushLater()
    }

    private var isAboveHighWater: Bool { output.count >= highWaterBytes }

    /// Says goodbye: what is queued is sent, then the close frame, and the connection ends when the client has answered
    /// or some time has passed. No message comes any more.
    package func close(_ code: WebSocketCloseCode = .normal, reason: String = "") {
        checkThread()
        guard isOpen else { return }
        state = .closing(since: loop.now)
        append(connection.close(code, reason: reason))
        loop.execute { [self] in reportEnd(.closed) }
        continueLater()
    }

    /// Breaks the connection off: what is queued is dropped.
    package func abort() {
        checkThread()
        channel.close()
    }

    // MARK: Input

    /// No more messages until `resumeReading`; the client is held back once the buffers are full.
    package func pauseReading() {
        checkThread()
        isReadingPaused = true
        updateReading()
    }

    package func resumeReading() {
        checkThread()
        guard isReadingPaused else { return }
        isReadingPaused = false
        continueLater()
    }

    /// Messages have to wait: nobody takes them, or the answers to earlier ones aren't read.
    private var mustWait: Bool { isOpen && (isReadingPaused || onText == nil || isAboveHighWater) }

    private func read(_ bytes: UnsafeRawBufferPointer) {
        isReading = true
        defer { isReading = false }
        var position = 0
        while true {
            if case .over = state { return }
            guard !mustWait else { return keep(bytes, position) }
            if position > 0, position < bytes.count, channel.isTickOver {
                keep(bytes, position)
                return continueLater()
            }
            do throws(WebSocketFailure) {
                guard let event = try connection.next(bytes, &position) else { return }
                try take(event)
            } catch { return fail(error) }
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer, _ position: Int) {
        if position < bytes.count { leftover.append(contentsOf: bytes[position...]) }
    }

    private func take(_ event: WebSocketConnection.Event) throws(WebSocketFailure) {
        switch event {
        case .string(let message):
            guard isOpen else { return }
            context.counters.webSocketMessagesReceived.add(1)
            onText?(message)
        case .binary(let message):
            guard isOpen else { return }
            context.counters.webSocketMessagesReceived.add(1)
            guard let onBinary else { throw WebSocketFailure(.unsupportedData, "messages are texts here") }
            onBinary(message)
        case .ping(let payload):
            try countControlFrame()
            append(connection.pong(payload))
        case .pong: try countControlFrame()
        case .close(let code, let reason):
            append(connection.close(code))
            end(.closedByPeer(code, reason: reason))
        }
    }

    private func countControlFrame() throws(WebSocketFailure) {
        guard !controlFrames.admit(now: loop.now) else { return }
        context.counters.abuses.add(1)
        throw WebSocketFailure(.policyViolation, "too many control frames")
    }

    /// What the client makes us keep counts against what all clients together may.
    private func reserveInput() {
        let wanted = connection.bufferedBytes + leftover.count
        if wanted > reservedBytes, !input.take(wanted - reservedBytes) {
            return fail(WebSocketFailure(.tryAgainLater, "the server holds too many unfinished messages"))
        }
        if wanted < reservedBytes { input.give(reservedBytes - wanted) }
        reservedBytes = wanted
    }

    private func updateReading() {
        guard !isReading else { return }
        if case .over = state { return }
        if mustWait || !leftover.isEmpty { channel.pauseReading() } else { channel.resumeReading() }
    }

    /// In the next turn, so that the handler's own call is over and others on the loop have had theirs.
    private func continueLater() {
        guard !isContinuationScheduled else { return }
        if case .over = state { return }
        isContinuationScheduled = true
        loop.execute { [self] in
            isContinuationScheduled = false
            continueNow()
        }
    }

    private func continueNow() {
        guard !isReading else { return continueLater() }
        if !leftover.isEmpty, !mustWait {
            channel.beginTick()
            let bytes = leftover
            leftover = []
            bytes.withUnsafeBytes { read($0) }
        }
        afterReading()
    }

    private func afterReading() {
        if case .over = state { return }
        reserveInput()
        updateReading()
    }

    // MARK: The end

    private func fail(_ failure: WebSocketFailure) {
        context.counters.badRequests.add(1)
        append(connection.close(failure.code, reason: failure.reason))
        end(.violation(failure))
    }

    /// Nothing more is read; what is queued still leaves.
    private func end(_ end: WebSocketEnd) {
        if case .over = state { return }
        stop()
        channel.resumeReading()
        channel.closeWhenFlushed(lingers: true)
        reportEnd(end)
    }

    private func stop() {
        state = .over
        leftover = []
        input.give(reservedBytes)
        reservedBytes = 0
    }

    /// The handler's closures hold the channel, and it holds them: here the ring is opened.
    private func reportEnd(_ end: WebSocketEnd) {
        guard !hasReportedEnd else { return }
        hasReportedEnd = true
        context.counters.webSocketsOpen.add(-1)
        let onClose = onClose
        onText = nil
        onBinary = nil
        onWritable = nil
        self.onClose = nil
        onClose?(end)
    }

    private func countAnswers() {
        let change = output.count - countedBytes
        if change < 0 || countedBytes == 0 { lastAnswerAt = loop.now }
        countedBytes = output.count
        context.countWaitingAnswers(change)
    }

    private func checkThread() { assert(loop.isCurrent, "a WebSocket belongs to its loop's thread") }
}

extension WebSocketChannel: ChannelDriver {
    package func received(_ bytes: UnsafeRawBufferPointer) {
        if case .over = state { return }
        progress.received(bytes.count, now: loop.now, limits: context.limits)
        if leftover.isEmpty { read(bytes) } else { leftover.append(contentsOf: bytes) }
        // What has come before goes first; a turn for it is on its way, or nobody takes messages.
        afterReading()
    }

    package func receivedEnd() {
        // A client that sends its close frame and no more may still want to read ours; but it gets one flush.
        if case .over = state, !hasInputEnded {
            hasInputEnded = true
            return
        }
        stop()
        channel.close()
    }

    package func produceOutput(into scratch: OutputScratch) {
        output.move(min(output.count, scratch.space), into: scratch)
        countAnswers()
    }

    package var waitingAnswers: (bytes: Int, since: UInt64) { (countedBytes, lastAnswerAt) }

    package func outputFlushed() {
        guard isOpen, output.count <= context.limits.answerLowWaterBytes else { return }
        if wasAboveHighWater {
            wasAboveHighWater = false
            onWritable?()
        }
        if !leftover.isEmpty { continueLater() } else { updateReading() }
    }

    package func channelClosed() {
        stop()
        output.removeAll()
        countAnswers()
        reportEnd(.connectionLost)
    }

    package func checkTimeouts(now: UInt64) {
        let limits = context.limits
        func isOver(_ since: UInt64, _ milliseconds: Int) -> Bool {
            now > since && now - since > UInt64(milliseconds) * 1_000_000
        }
        switch state {
        case .over: return
        case .closing(let since):
            if output.isEmpty, isOver(since, limits.lingerMilliseconds) { channel.close() }
            return
        case .open: break
        }
        // What we don't read can't tell that the client lives; that it doesn't read is seen by the socket.
        if mustWait || !leftover.isEmpty {
            heardAt = now
            progress.wait(now: now)
            return
        }
        heardAt = max(heardAt, channel.lastReceivedAt)
        if isOver(heardAt, limits.webSocketSilenceMilliseconds) {
            reportEnd(.timedOut)
            return channel.timeOut()
        }
        if isOver(heardAt, limits.webSocketPingMilliseconds), isOver(pingedAt, limits.webSocketPingMilliseconds) {
            pingedAt = now
            append(connection.ping())
        }
        guard connection.isWithinMessage else { return progress.wait(now: now) }
        if progress.isTooSlow(now: now, limits: limits) {
            context.counters.timeouts.add(1)
            fail(WebSocketFailure(.policyViolation, "a message took too long"))
        }
    }

    package func beginShutdown() { close(.goingAway, reason: "the server is going down") }

    package func endShutdown() { channel.close() }
}
