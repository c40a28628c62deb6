import HearthConcurrency
import CNghttp2
import HearthModel

/// One gRPC call of any kind: request messages, response messages, one status.
///
/// All methods are called on `loop`'s thread, and all callbacks run on it. After the end (`finish`, or `onCancel` was
/// called) methods have no effect and no callback runs.
///
/// `@unchecked Sendable`: guarded by the loop's thread; handlers pass it through closures that return to that thread.
package final class GRPCCall: @unchecked Sendable {
    package let loop: EventLoop
    /// `/package.Service/Method`.
    package var path: String { stream.path }
    package let remoteAddress: String
    /// Identifies a connection in the process.
    package let connectionNumber: UInt64
    /// The deadline, on the clock of `EventLoop.monotonicNanoseconds`; nil: none.
    package private(set) var deadline: UInt64?

    /// Receives a whole request message, decompressed. Set it within `begin`. A handler that must wait first calls
    /// `pauseReading` in `begin`, sets its callbacks later, and then calls `resumeReading`.
    package var onMessage: (([UInt8]) -> Void)? { didSet { if isFinished { onMessage = nil } } }
    /// The client sends no more messages.
    package var onHalfClose: (() -> Void)? { didSet { if isFinished { onHalfClose = nil } } }
    /// The client reset the call, its connection is closed, or its deadline passed (then status 4, DEADLINE_EXCEEDED,
    /// has been sent). Called at most once, and no callback follows.
    package var onCancel: (() -> Void)? { didSet { if isFinished { onCancel = nil } } }
    /// Called after a `send` that returned false, when the queue has space again.
    package var onWritable: (() -> Void)? { didSet { if isFinished { onWritable = nil } } }
    /// Called when further input cannot be read, after the earlier messages and instead of `onHalfClose`; the handler
    /// must then call `finish`. Without this callback the call is finished with that status immediately, and `onCancel`
    /// follows.
    package var onFault: ((Status) -> Void)? { didSet { if isFinished { onFault = nil } } }

    private let stream: HTTP2Stream
    /// The session's loop. The stream releases the session when it is closed.
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
    /// The compressed message that is being decompressed; later input waits.
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

    /// All fields of the call. Each use creates the array; for one or two fields `firstValue` is cheaper.
    package var metadata: [HTTPHeader] { stream.headers.headers }

    /// The first value of a field; binary fields (`-bin`) stay base64.
    package func firstValue(_ lowercaseName: String) -> String? { stream.headers.firstValue(lowercaseName) }

    /// For methods with one request message: waits for exactly one message, then runs `body`.
    package func unary(_ body: @escaping ([UInt8]) -> Void) { unaryBody = body }

    /// Stops `onMessage` until `resumeReading`; the client is paused when its window is full.
    package func pauseReading() {
        checkThread()
        isReadingPaused = true
    }

    /// Resumes messages from the loop's next tick on, never within this call.
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

    /// Sends one message. False: the queue is above its limit, wait for `onWritable`; the message is sent in any case.
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

    /// Sends several messages; the result is that of the last.
    @discardableResult
    package func send(_ messages: MessageBatch) -> Bool {
        checkThread()
        guard !isFinished else { return false }
        if compressesAnswers { return messages.messages.reduce(true) { send($1) } }
        sendHead()
        return stream.queue(messages.bytes)
    }

    /// Sends one message from several pieces, which are not joined.
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

    /// Ends the call. `trailers` are sent in addition to the status.
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

    /// The end for any reason: frees the objects that the handler's closures hold, including this call.
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
        loop.note(method: "POST", path: path)
        switch fields.timeout {
        case .none: break
        case .malformed: return finish(.invalidArgument("malformed grpc-timeout"))
        case .nanoseconds(let nanoseconds):
            let deadline = loop.now &+ nanoseconds
            self.deadline = deadline
            deadlineTimer = loop.schedule(atNanoseconds: deadline) { [weak self] in
                self?.giveUp(Status(.deadlineExceeded, "the deadline of the call has passed"))
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
        // Input that arrived while the call was parked.
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

    /// The stream is closed.
    func cancel() {
        guard !isFinished else { return }
        let onCancel = onCancel
        end()
        onCancel?()
    }

    /// The engine ends the call: it sends the status, or resets the stream when a response message is incomplete.
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

    /// Whether the call waits for the client: within a message, or for the only message.
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

    /// Ends a call whose input is invalid or too large. The handler must be notified: it may hold much memory for the
    /// call, and the responses to earlier messages may have to be sent first.
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

    /// Decompresses the next part of a message. True when it is complete.
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

    /// Counts the input that the server holds: an unfinished message, a message that waits for the end of its request,
    /// and input that arrived while reading was paused.
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

    /// Sets the call's principal: administrators may send when clients have used up the memory for input.
    package func identified(_ requester: Requester) { stream.session?.input.identified(requester) }

    private func checkThread() { assert(loop.isCurrent, "a call belongs to its loop's thread") }
}
