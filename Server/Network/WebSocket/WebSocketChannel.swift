import HearthConcurrency
import HearthModel
import HearthWebSocket

/// The server's end of a WebSocket. All methods are called on `loop`'s thread, and all callbacks run on it.
///
/// It answers and sends pings, and handles close frames. While a client does not read its output, its input is not read
/// either, so that the waiting output is bounded by the handler's own messages; `send` reports when that is too much.
///
/// `@unchecked Sendable`: guarded by the loop's thread; handlers pass it through closures that return to that thread.
package final class WebSocketChannel: @unchecked Sendable {
    private enum State {
        case open
        /// The server's close frame is sent or queued; only the client's close frame is processed.
        case closing(since: UInt64)
        /// No more input is read.
        case over
    }

    package let loop: EventLoop

    /// A message. Messages that arrive before it is set wait.
    package var onText: (([UInt8]) -> Void)? { didSet { continueLater() } }
    /// Without it a binary message closes the connection with 1003.
    package var onBinary: (([UInt8]) -> Void)?
    /// Called exactly once, for any end of the connection, and no callback follows. After the server's own `close` it
    /// is called soon, but not within the call.
    package var onClose: ((WebSocketEnd) -> Void)?
    /// Called after a `send` that returned false, when the queue has space again.
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
    /// When input from the client was last read completely, or reading was paused.
    private var lastInputAt: UInt64
    private var pingedAt: UInt64 = 0

    /// - Parameters:
    ///   - output: bytes to send first, ending with the 101 response.
    ///   - leftover: bytes received after the request.
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
        lastInputAt = now
        context.counters.webSocketsOpened.add(1)
        context.counters.webSocketsOpen.add(1)
        countAnswers()
        channel.flushLater()
    }

    /// `address:port` of the client.
    package var remoteAddress: String { channel.remoteAddress }
    /// Identifies a connection in the process.
    package var connectionNumber: UInt64 { channel.number }
    package var isSecure: Bool { channel.isSecure }

    /// Whether messages can be sent.
    package var isOpen: Bool {
        if case .open = state { return true }
        return false
    }

    /// Bytes that wait to be sent, without those that the system has accepted.
    package var queuedBytes: Int { output.count }

    // MARK: Output

    /// False: the queue is above its limit; wait for `onWritable`. The message is accepted in any case, unless the
    /// connection is closed.
    ///
    /// - Parameter string: valid UTF-8.
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

    /// A message for many recipients: framed, compressed and stored once.
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

    /// Closes in an orderly way: queued messages are sent, then the close frame. The connection ends when the client
    /// has answered or after a timeout. No message is delivered any more.
    package func close(_ code: WebSocketCloseCode = .normal, reason: String = "") {
        checkThread()
        guard isOpen else { return }
        state = .closing(since: loop.now)
        append(connection.close(code, reason: reason))
        loop.execute { [self] in reportEnd(.closed) }
        continueLater()
    }

    /// Aborts the connection: queued output is dropped.
    package func abort() {
        checkThread()
        channel.close()
    }

    // MARK: Input

    /// Stops messages until `resumeReading`; the client is paused when the buffers are full.
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

    /// Messages must wait: the handler does not accept them, or the client does not read earlier responses.
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
            guard let onBinary else { throw WebSocketFailure(.unsupportedData, "only text messages are accepted") }
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

    /// The client's held input counts for the common limit of all clients.
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

    /// In the next tick, after the handler's present call and the other work of the loop.
    private func continueLater() {
        guard !isContinuationScheduled else { return }
        if case .over = state { return }
        isContinuationScheduled = true
        channel.workLater { [self] in
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

    /// Stops reading; queued output is still sent.
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

    /// The handler's closures retain the channel, and it retains them: this breaks the cycle.
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
        // Earlier input is processed first; a job for it is scheduled, or the handler accepts no messages.
        afterReading()
    }

    package func receivedEnd() {
        // A client that sends its close frame and stops sending may still want to read ours; but it gets one flush
        // only.
        if case .over = state, !hasInputEnded {
            hasInputEnded = true
            return
        }
        stop()
        channel.close()
    }

    package func produceOutput(into scratch: OutputScratch) throws(BrokenInvariant) {
        try output.move(min(output.count, scratch.space), into: scratch)
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
        // While reading is paused, input cannot show that the client is alive; the socket detects that it does not
        // read.
        if mustWait || !leftover.isEmpty {
            lastInputAt = now
            progress.wait(now: now)
            return
        }
        lastInputAt = max(lastInputAt, channel.lastReceivedAt)
        if isOver(lastInputAt, limits.webSocketSilenceMilliseconds) {
            // Counted first: who is informed of the end may look at the counter.
            context.counters.timeouts.add(1)
            reportEnd(.timedOut)
            return channel.close()
        }
        if isOver(lastInputAt, limits.webSocketPingMilliseconds), isOver(pingedAt, limits.webSocketPingMilliseconds) {
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
