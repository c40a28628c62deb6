import HearthConcurrency
import CNghttp2
import HearthModel

/// Takes gRPC calls: requests over HTTP/2 whose content type is `application/grpc`. On the loop's thread.
package protocol GRPCHandler: Sendable {
    func begin(_ call: GRPCCall)
}

/// One gRPC call, of any kind: messages in, messages out, one status.
///
/// All methods are called on `loop`'s thread, and all callbacks come on it. After the end (`finish`, or `onCancel` was
/// called) methods do nothing and no callback comes.
///
/// `@unchecked Sendable`: guarded by the loop's thread; handlers carry it through closures that come back to it.
package final class GRPCCall: @unchecked Sendable {
    package let loop: EventLoop
    /// `/package.Service/Method`.
    package var path: String { stream.path }
    package let remoteAddress: String
    /// Tells the connections of a process apart.
    package let connectionNumber: UInt64
    /// When the client stops waiting, on the clock of `EventLoop.monotonicNanoseconds`; nil: never.
    package private(set) var deadline: UInt64?

    /// A whole request message, decompressed. Set within `begin`; a handler that has to wait for something first calls
    /// `pauseReading` there, sets its callbacks when it knows, and calls `resumeReading`.
    package var onMessage: (([UInt8]) -> Void)? { didSet { if isFinished { onMessage = nil } } }
    /// The client sends no more messages.
    package var onHalfClose: (() -> Void)? { didSet { if isFinished { onHalfClose = nil } } }
    /// The client reset the call, its connection is gone, or its deadline passed (then 4 DEADLINE_EXCEEDED has been
    /// answered). At most once, nothing comes after it.
    package var onCancel: (() -> Void)? { didSet { if isFinished { onCancel = nil } } }
    /// After a `send` that returned false: there is room again.
    package var onWritable: (() -> Void)? { didSet { if isFinished { onWritable = nil } } }
    /// What the client sends can't be read on; it comes behind the messages before, instead of `onHalfClose`, and the handler
    /// has to `finish`. Without it the call is finished with that status at once, and `onCancel` follows.
    package var onFault: ((Status) -> Void)? { didSet { if isFinished { onFault = nil } } }

    private let stream: HTTP2Stream
    /// Of the session, which the stream has let go of when it is closed.
    private let input: HeldInput?
    private let context: LoopContext
    private var deframer: GRPCDeframer
    private var held: [UInt8] = []
    private var countedBytes = 0
    private var isBegun = false
    private var isHalfClosed = false
    private var isHalfCloseDelivered = false
    private var isReadingPaused = false
    private var isDeliveryScheduled = false
    private var unaryBody: (([UInt8]) -> Void)?
    private var unaryMessage: [UInt8]?
    private var isFeeding = false
    private var isFaulted = false
    /// A compressed message that is being unpacked; what comes behind it waits.
    private var inflation: GzipInflation?
    private var hasSentHead = false
    private var requestsAreGzip = false
    private var compressesAnswers = false
    package private(set) var isFinished = false
    private var deadlineTimer: Timer?

    init(stream: HTTP2Stream, context: LoopContext) {
        self.stream = stream
        input = stream.session?.input
        self.context = context
        loop = context.loop
        remoteAddress = stream.session?.channel.remoteAddress ?? ""
        connectionNumber = stream.session?.channel.number ?? 0
        deframer = GRPCDeframer(messageBytesMax: context.limits.messageBytesMax)
    }

    // MARK: Request

    /// The call's fields, all of them, made anew by each use: for one or two `firstValue` is cheaper.
    package var metadata: [HTTPHeader] { stream.headers.headers }

    /// The first value of a field; binary fields (`-bin`) stay base64.
    package func firstValue(_ lowercaseName: String) -> String? { stream.headers.firstValue(lowercaseName) }

    /// For methods with one request: gathers exactly one message, then runs `body`.
    package func unary(_ body: @escaping ([UInt8]) -> Void) { unaryBody = body }

    /// No more `onMessage` until `resumeReading`; the client is held back once its window is full.
    package func pauseReading() {
        checkThread()
        isReadingPaused = true
    }

    /// Messages come again from the loop's next turn on, never within this call.
    package func resumeReading() {
        checkThread()
        guard isReadingPaused else { return }
        isReadingPaused = false
        guard !isDeliveryScheduled, !held.isEmpty || isHalfClosed else { return }
        isDeliveryScheduled = true
        loop.execute { [self] in
            isDeliveryScheduled = false
            deliverHeld()
        }
    }

    // MARK: Answer

    /// Sends one message. False: more is queued than should be, wait for `onWritable`; it is sent in any case.
    @discardableResult
    package func send(_ message: [UInt8]) -> Bool {
        checkThread()
        guard !isFinished else { return false }
        sendHead()
        if compressesAnswers, let threshold = context.compressionThresholdBytes, message.count >= threshold,
            let compressed = Gzip.compress(message), compressed.count < message.count
        {
            return stream.queue(
                compressed, prefix: GRPCPrefix(isCompressed: true, messageBytes: compressed.count))
        }
        return stream.queue(message, prefix: GRPCPrefix(isCompressed: false, messageBytes: message.count))
    }

    /// One message given in pieces, which are not joined.
    @discardableResult
    package func sendParts(_ parts: [[UInt8]]) -> Bool {
        checkThread()
        guard !isFinished else { return false }
        guard parts.count > 1, !compressesAnswers else {
            return send(parts.count == 1 ? parts[0] : Array(parts.joined()))
        }
        sendHead()
        let length = parts.reduce(0) { $0 + $1.count }
        var hasCapacity = stream.queue(parts[0], prefix: GRPCPrefix(isCompressed: false, messageBytes: length))
        for part in parts.dropFirst() { hasCapacity = stream.queue(part) }
        return hasCapacity
    }

    /// Ends the call. `trailers` are sent beside the status.
    package func finish(_ status: Status, trailers: [HTTPHeader] = []) {
        checkThread()
        guard !isFinished else { return }
        end()
        if status.code == .ok, trailers.isEmpty {
            sendHead()
            stream.endOutputOK()
            return
        }
        var fields = hasSentHead ? HTTP2Fields() : HTTP2Fields(status: 200)
        if !hasSentHead { fields.append("content-type", "application/grpc") }
        GRPCStatusFields.append(status, to: &fields)
        fields.append(trailers)
        if hasSentHead { stream.endOutput(trailers: fields) } else { stream.submitWhole(fields) }
    }

    private func sendHead() {
        guard !hasSentHead else { return }
        hasSentHead = true
        stream.submitHead(compressesAnswers ? .grpcHeadGzip : .grpcHead)
    }

    /// The end, whichever: frees what the handler's closures hold, among it this call.
    private func end() {
        isFinished = true
        deadlineTimer?.cancel()
        deadlineTimer = nil
        onMessage = nil
        onHalfClose = nil
        onCancel = nil
        onWritable = nil
        onFault = nil
        unaryBody = nil
        unaryMessage = nil
        inflation = nil
        input?.give(countedBytes)
        countedBytes = 0
        let waiting = held.count
        held = []
        if waiting > 0 { stream.consumed(waiting) }
    }

    // MARK: Called by the stream

    func begin(_ handler: any GRPCHandler, _ fields: GRPCRequestFields) {
        switch fields.timeout {
        case .none: break
        case .malformed: return finish(.invalidArgument("malformed grpc-timeout"))
        case .nanoseconds(let nanoseconds):
            let deadline = loop.now &+ nanoseconds
            self.deadline = deadline
            deadlineTimer = loop.schedule(atNanoseconds: deadline) { [unowned self] in
                giveUp(Status(.deadlineExceeded, "the deadline of the call has passed"))
            }
        }
        guard fields.encoding != .unknown else {
            return finish(
                .unimplemented("grpc-encoding \(firstValue("grpc-encoding") ?? "") is not supported"),
                trailers: [HTTPHeader("grpc-accept-encoding", "identity,gzip")])
        }
        requestsAreGzip = fields.encoding == .gzip
        compressesAnswers = context.compressionThresholdBytes != nil && fields.acceptsGzip
        isBegun = true
        handler.begin(self)
        // What came while the call was parked.
        if !held.isEmpty || isHalfClosed { deliverHeld() }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard !isFinished, !isFaulted else { return stream.consumed(bytes.count) }
        if !isBegun || isReadingPaused || !held.isEmpty || isFeeding || inflation != nil {
            held.append(contentsOf: bytes)
            countHeldBytes()
        } else {
            feed(bytes)
        }
    }

    func receivedEnd() {
        isHalfClosed = true
        deliverHalfClose()
    }

    func becameWritable() { onWritable?() }

    /// The stream is gone.
    func cancel() {
        guard !isFinished else { return }
        let onCancel = onCancel
        end()
        onCancel?()
    }

    /// The engine ends the call: answers with the status, or breaks off when an answer is stuck half-way.
    func giveUp(_ status: Status) {
        guard !isFinished else { return }
        let onCancel = onCancel
        if stream.queuedBytes > 0 {
            end()
            stream.reset(NGHTTP2_CANCEL)
        } else {
            finish(status)
        }
        onCancel?()
    }

    /// It is the client that is waited for: within a message, or for the only one.
    var isExpectingInput: Bool {
        !isReadingPaused && !isFaulted && inflation == nil && held.isEmpty
            && (deframer.isMidMessage || unaryBody != nil)
    }

    private func deliverHeld() {
        guard !isFinished, !isReadingPaused, inflation == nil else { return }
        let bytes = held
        held = []
        bytes.withUnsafeBytes { feed($0) }
        deliverHalfClose()
    }

    private func deliverHalfClose() {
        guard isBegun, isHalfClosed, !isHalfCloseDelivered, !isFinished, !isFaulted, !isReadingPaused,
            inflation == nil, held.isEmpty
        else { return }
        isHalfCloseDelivered = true
        if deframer.isMidMessage { return fail(.internalError("the last request message is cut off")) }
        if let unaryBody {
            guard let message = unaryMessage else { return finish(.invalidArgument("no request message")) }
            unaryMessage = nil
            countHeldBytes()
            return unaryBody(message)
        }
        let onHalfClose = onHalfClose
        self.onHalfClose = nil
        onHalfClose?()
    }

    private func feed(_ bytes: UnsafeRawBufferPointer) {
        isFeeding = true
        defer { isFeeding = false }
        var position = 0
        while position < bytes.count, !isFinished, !isFaulted {
            if isReadingPaused || inflation != nil {
                held.append(contentsOf: bytes[position...])
                break
            }
            switch deframer.next(bytes, &position) {
            case .needsMore: break
            case .message(let message, let isCompressed): deliver(message, isCompressed: isCompressed)
            case .failure(let status): fail(status)
            }
        }
        stream.consumed(isFinished || isFaulted ? bytes.count : position)
        if !isFinished { countHeldBytes() }
    }

    /// Ends a call whose input is broken, or too much. Whoever handles it must hear of that: it may hold much for the call,
    /// and what it is doing for messages that came before may have to be answered first.
    private func fail(_ status: Status) {
        guard !isFinished, !isFaulted else { return }
        isFaulted = true
        let waiting = held.count
        held = []
        inflation = nil
        if waiting > 0 { stream.consumed(waiting) }
        if let onFault {
            self.onFault = nil
            return onFault(status)
        }
        let onCancel = onCancel
        finish(status)
        onCancel?()
    }

    private func deliver(_ message: [UInt8], isCompressed: Bool) {
        guard isCompressed else { return deliver(message) }
        guard requestsAreGzip else {
            return fail(.internalError("a compressed message without grpc-encoding"))
        }
        do throws(Status) {
            let new = try GzipInflation(message, limitBytes: context.limits.messageBytesMax)
            // Most messages are small.
            if try new.inflate() { return deliver(new.output) }
            inflation = new
            context.inflations.add(self, for: .nobody(at: remoteAddress, connection: connectionNumber))
        } catch { fail(error) }
    }

    /// Unpacks some more of a compressed message. True when nothing is left to do.
    func inflate() -> Bool {
        guard let inflation, !isFinished else { return true }
        do throws(Status) {
            guard try inflation.inflate() else {
                countHeldBytes()
                return isFinished || isFaulted
            }
            self.inflation = nil
            isFeeding = true
            deliver(inflation.output)
            isFeeding = false
            deliverHeld()
            if !isFinished { countHeldBytes() }
        } catch { fail(error) }
        return true
    }

    private func deliver(_ message: [UInt8]) {
        guard unaryBody != nil else {
            onMessage?(message)
            return
        }
        guard unaryMessage == nil else { return fail(.invalidArgument("more than one request message")) }
        unaryMessage = message
    }

    /// What stays is counted against the server: an unfinished message, one that waits for the end of its request, and
    /// what came while nothing was read.
    private func countHeldBytes() {
        guard let input else { return }
        let now = deframer.heldBytes + held.count + (unaryMessage?.count ?? 0) + (inflation?.heldBytes ?? 0)
        if now > countedBytes {
            guard input.take(now - countedBytes) else {
                return fail(.unavailable("the server holds too many unfinished requests"))
            }
        } else if now < countedBytes {
            input.give(countedBytes - now)
        }
        countedBytes = now
    }

    /// Tells for whom the call is: administrators may send although clients fill the memory for input.
    package func identified(_ requester: Requester) { stream.session?.input.identified(requester) }

    private func checkThread() { assert(loop.isCurrent, "a call belongs to its loop's thread") }
}
