import HearthConcurrency
import HearthModel

/// An HTTP/1.1 connection of the server: one exchange after another, pipelined requests in order.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
final class HTTP1Connection: ChannelDriver, @unchecked Sendable {
    let channel: SocketChannel
    let context: LoopContext
    private let input: HeldInput
    private var parser: HTTP1Parser
    private var output = OutputQueue()

    /// The request that is being received or answered.
    private var exchange: HTTPExchange?
    private var answer: HTTP1Answer?
    private var requestIsHead = false
    private var requestIsVersion1_0 = false
    private var keepsAlive = true
    private var isRequestComplete = true
    private var isAnswerComplete = true
    /// The client waits for `100 Continue`, which is not sent.
    private var owesContinue = false
    private var isReadingPausedByHandler = false
    private var wasAboveHighWater = false
    /// Body bytes read after the response was complete.
    private var drainedBytes = 0

    private var held: HeldRequests
    /// The fields of the present request.
    private var headBytes = 0
    /// Bytes after the current request.
    private var leftover: [UInt8] = []
    private var isParsing = false
    private var requestHasBody = false
    /// The socket belongs to a WebSocket.
    private var isHandedOver = false
    /// The parser's position in its input, for the next parser.
    private var unparsed: UnsafeRawBufferPointer?
    private var continuesLater = false
    /// Response bytes that the loop has counted, and the time when the last of them were sent.
    private var countedBytes = 0
    private var lastAnswerAt: UInt64 = 0
    private var isClosing = false
    private var isShuttingDown = false
    /// The request is answered with an error, and its rest is not read.
    private var isRefused = false

    private var idleFrom: UInt64
    private var headSince: UInt64?
    private var progress: BodyProgress

    init(channel: SocketChannel, context: LoopContext) {
        self.channel = channel
        self.context = context
        input = context.heldInput(of: channel)
        held = HeldRequests(context)
        parser = HTTP1Parser(limits: context.limits)
        idleFrom = channel.loop.now
        progress = BodyProgress(now: channel.loop.now)
    }

    private var isBusy: Bool { !isRequestComplete || !isAnswerComplete }
    private var isAboveHighWater: Bool { output.count >= context.answerHighWaterBytes }

    // MARK: Input

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard !isClosing else { return }
        if leftover.isEmpty {
            parse(bytes)
        } else {
            leftover.append(contentsOf: bytes)
            parseLeftover()
        }
        countHeld()
        updateReading()
    }

    /// Input that is not a body: the head of the present request, an incomplete head, and waiting input after them.
    private func countHeld() {
        if isClosing || held.set(headBytes + parser.heldBytes + leftover.count) { return }
        refuse(HTTP1Failure(status: 503, reason: HeldRequests.tooMany))
    }

    private func parseLeftover() {
        guard !isParsing, !isClosing, !leftover.isEmpty, !mustWait, !continuesLater else { return }
        let bytes = leftover
        leftover = []
        bytes.withUnsafeBytes { parse($0) }
    }

    /// The next request is not parsed while one is being answered, or while too many responses wait.
    private var mustWait: Bool { isRequestComplete && (!isAnswerComplete || isAboveHighWater) }

    /// A loop instead of recursion: a request that is answered immediately returns here for the next one.
    private func parse(_ bytes: UnsafeRawBufferPointer) {
        isParsing = true
        defer { isParsing = false }
        var position = 0
        while !isClosing {
            if mustWait {
                leftover.append(contentsOf: bytes[position...])
                return
            }
            if position > 0, position < bytes.count, channel.isTickOver {
                leftover.append(contentsOf: bytes[position...])
                return continueLater()
            }
            let before = position - parser.heldBytes
            switch parser.next(bytes, &position) {
            case .needsMore:
                if !parser.isInHead || parser.isBetweenRequests {
                    headSince = nil
                } else if headSince == nil {
                    headSince = channel.loop.now
                }
                return
            case .head(let head):
                headSince = nil
                headBytes = position - before
                unparsed = UnsafeRawBufferPointer(rebasing: bytes[position...])
                begin(head)
                unparsed = nil
            case .body(let range): receivedBody(UnsafeRawBufferPointer(rebasing: bytes[range]))
            case .end:
                isRequestComplete = true
                exchange?.receivedEnd()
                finishIfComplete()
            case .failure(let failure): refuse(failure)
            }
        }
    }

    /// The slice of this tick is used up: other connections on the loop come first.
    private func continueLater() {
        continuesLater = true
        channel.workLater { [weak self] in self?.continueNow() }
    }

    private func continueNow() {
        continuesLater = false
        guard !isClosing else { return }
        channel.beginTick()
        parseLeftover()
        countHeld()
        updateReading()
    }

    private func begin(_ head: HTTP1Head) {
        context.counters.httpRequests.add(1)
        isRequestComplete = false
        isAnswerComplete = false
        answer = nil
        drainedBytes = 0
        progress = BodyProgress(now: channel.loop.now)
        requestIsHead = head.method == "HEAD"
        requestIsVersion1_0 = head.isVersion1_0
        requestHasBody = head.body != .none
        keepsAlive = head.keepsAlive && !isShuttingDown
        if case .length(let length) = head.body, length > context.limits.bodyBytesMax {
            return refuse(HTTP1Failure(status: 413, reason: ""))
        }
        if let type = head.headers.firstValue("content-type"), GRPCContentType.matches(type) {
            return refuse(HTTP1Failure(status: 505, reason: "gRPC needs HTTP/2"))
        }
        owesContinue = head.expectsContinue && head.body != .none
        let exchange = HTTPExchange(
            loop: channel.loop,
            head: HTTPRequestHead(
                method: head.method, target: head.target, authority: head.authority,
                scheme: channel.isSecure ? "https" : "http", headers: head.headers,
                version: head.isVersion1_0 ? .http1_0 : .http1_1, remoteAddress: channel.remoteAddress,
                connectionNumber: channel.number, isSecure: channel.isSecure),
            transport: self, bodyBytesMax: context.limits.bodyBytesMax, input: input)
        self.exchange = exchange
        exchange.begin(context.http)
        if owesContinue, answer == nil, !isAnswerComplete {
            owesContinue = false
            output.append(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            channel.flushLater()
        }
    }

    private func receivedBody(_ bytes: UnsafeRawBufferPointer) {
        progress.received(bytes.count, now: channel.loop.now, limits: context.limits)
        guard isAnswerComplete else {
            exchange?.receivedBody(bytes)
            return
        }
        // The response is complete and the rest of the body is not needed; a small rest is read to keep the connection.
        drainedBytes += bytes.count
        if drainedBytes > context.limits.pipelinedBytesMax { close() }
    }

    private func updateReading() {
        guard !isHandedOver else { return }
        let isHeld = isReadingPausedByHandler || (exchange?.bufferedBytes ?? 0) > 0
        if isHeld || leftover.count > context.limits.pipelinedBytesMax {
            channel.pauseReading()
        } else {
            channel.resumeReading()
        }
    }

    func receivedEnd() {
        exchange?.cancel()
        exchange = nil
        if output.isEmpty || !isAnswerComplete { channel.close() } else { close() }
    }

    // MARK: End of an exchange

    private func completeAnswer() {
        isAnswerComplete = true
        exchange = nil
        headBytes = 0
        isReadingPausedByHandler = false
        channel.flushLater()
        // A client that waited for 100 Continue may send its body or not, so the next bytes are ambiguous.
        if !keepsAlive || owesContinue { return close() }
        finishIfComplete()
        // The handler may have paused reading, and needs no rest of the request.
        if !isParsing, !isClosing { updateReading() }
    }

    private func finishIfComplete() {
        guard isRequestComplete, isAnswerComplete, !isClosing else { return }
        exchange = nil
        idleFrom = channel.loop.now
        if !keepsAlive || isShuttingDown { return close() }
        guard !isParsing else { return }
        parseLeftover()
        countHeld()
        updateReading()
    }

    private func refuse(_ failure: HTTP1Failure) {
        context.counters.badRequests.add(1)
        isRefused = true
        exchange?.cancel()
        exchange = nil
        // A started response cannot be followed by another one.
        if answer == nil || isAnswerComplete {
            var type = HTTPHeader("content-type", "text/plain")
            var string = Array((failure.reason + "\n").utf8)
            if failure.status == 413 {
                type = ContentTooLarge.contentType
                string = ContentTooLarge.body(limitBytes: context.limits.bodyBytesMax)
            }
            let head = HTTP1Answer(
                status: failure.status, headers: [type, HTTPHeader("content-length", "\(string.count)")],
                isHead: false, isVersion1_0: false, keepsAlive: false, date: channel.loop.currentDate())
            output.append(head.head)
            output.append(string)
        }
        close()
    }

    /// The pending output, and the input after the request. Nil when a body is being received. Afterwards the
    /// connection has ended, and its socket has another owner.
    func handOver() -> (output: OutputQueue, leftover: [UInt8])? {
        guard !isClosing, !requestHasBody else { return nil }
        let result = (output, unparsed.map(Array.init) ?? leftover)
        isClosing = true
        isHandedOver = true
        exchange = nil
        leftover = []
        output.removeAll()
        countAnswers()
        _ = held.set(0)
        return result
    }

    /// The rest of a request that was not read, or input after it, would make the kernel reset the connection before
    /// the peer has read the response: such input is dropped for a while. A peer that sent nothing more needs no time.
    private func close() {
        let lingers = isRefused || owesContinue || !isRequestComplete || !leftover.isEmpty
        isClosing = true
        leftover = []
        channel.resumeReading()
        channel.closeWhenFlushed(lingers: lingers)
    }

    // MARK: Output

    func produceOutput(into scratch: OutputScratch) throws(BrokenInvariant) {
        try output.move(min(output.count, scratch.space), into: scratch)
        countAnswers()
    }

    var waitingAnswers: (bytes: Int, since: UInt64) { (countedBytes, lastAnswerAt) }

    private func countAnswers() {
        let change = output.count - countedBytes
        if change < 0 || countedBytes == 0 { lastAnswerAt = channel.loop.now }
        countedBytes = output.count
        context.countWaitingAnswers(change)
    }

    func outputFlushed() {
        guard !isClosing, output.count <= context.limits.answerLowWaterBytes else { return }
        if wasAboveHighWater {
            wasAboveHighWater = false
            exchange?.becameWritable()
        }
        if !leftover.isEmpty {
            parseLeftover()
            countHeld()
            updateReading()
        }
    }

    func channelClosed() {
        isClosing = true
        output.removeAll()
        countAnswers()
        _ = held.set(0)
        let exchange = exchange
        self.exchange = nil
        exchange?.cancel()
    }

    // MARK: Time

    func checkTimeouts(now: UInt64) {
        // From then on the channel has its own limits: nothing more is answered.
        guard !isClosing else { return }
        let limits = context.limits
        if let headSince, now > headSince + UInt64(limits.headMilliseconds) * 1_000_000 {
            context.counters.timeouts.add(1)
            refuse(HTTP1Failure(status: 408, reason: "the request head took too long"))
        } else if !isRequestComplete {
            if exchange?.isHoldingInput == true {
                progress.wait(now: now)
            } else if progress.isTooSlow(now: now, limits: limits) {
                context.counters.timeouts.add(1)
                refuse(HTTP1Failure(status: 408, reason: "the request body took too long"))
            }
        } else if !isBusy, headSince == nil, now > idleFrom + UInt64(limits.idleHTTP1Milliseconds) * 1_000_000 {
            channel.timeOut()
        }
    }

    func beginShutdown() {
        isShuttingDown = true
        keepsAlive = false
        if !isBusy, !isClosing { close() }
    }

    var idleSince: UInt64? {
        isBusy || isClosing || !output.isEmpty || !leftover.isEmpty ? nil : headSince ?? idleFrom
    }

    func closeIdle() { channel.close() }

    func endShutdown() { channel.close() }
}

extension HTTP1Connection: ExchangeTransport {
    func respond(status: Int, headers: [HTTPHeader], body: [UInt8]) {
        var headers = headers
        if status != 204, status != 304, headers.firstValue("content-length") == nil {
            headers.append(HTTPHeader("content-length", String(body.count)))
        }
        start(status: status, headers: headers)
        guard append(body) else { return }
        completeAnswer()
    }

    func start(status: Int, headers: [HTTPHeader]) {
        let answer = HTTP1Answer(
            status: status, headers: headers, isHead: requestIsHead, isVersion1_0: requestIsVersion1_0,
            keepsAlive: keepsAlive && !owesContinue, date: channel.loop.currentDate())
        if answer.closesConnection { keepsAlive = false }
        output.append(answer.head)
        self.answer = answer
        channel.flushLater()
    }

    func write(_ bytes: [UInt8]) -> Bool {
        guard append(bytes) else { return false }
        channel.flushLater()
        guard isAboveHighWater else { return true }
        wasAboveHighWater = true
        return false
    }

    /// False when the handler is at fault, and the connection has ended.
    private func append(_ bytes: [UInt8]) -> Bool {
        do throws(BrokenInvariant) {
            try answer?.write(bytes, to: &output)
        } catch {
            exchange = nil
            isClosing = true
            channel.broke(error)
            return false
        }
        countAnswers()
        return true
    }

    func end(trailers: [HTTPHeader]) {
        guard answer?.end(trailers: trailers, to: &output) == true else { return abort() }
        completeAnswer()
    }

    /// The end of the connection shows that the answer is not whole; the complete answers before it are sent.
    func abort() {
        exchange = nil
        close()
    }

    func consumed(_ bytes: Int) {
        guard !isParsing, !isClosing else { return }
        updateReading()
    }

    func setReadingPaused(_ isPaused: Bool) {
        isReadingPausedByHandler = isPaused
        guard !isParsing, !isClosing else { return }
        updateReading()
    }
}
