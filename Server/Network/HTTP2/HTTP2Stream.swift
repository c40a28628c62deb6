import CNghttp2
import HearthConcurrency
import HearthModel
import HearthWebSocket

/// One stream of the server: the request's head, the response queue, and the handler.
final class HTTP2Stream {
    private enum Consumer {
        case none
        case exchange(HTTPExchange)
        case call(GRPCCall)
    }

    enum Progress { case fine, streamIsStuck, headIsStuck }

    let id: Int32
    /// The stream's slot in the session's list.
    var slot: Int
    private let loop: EventLoop
    private let createdAt: UInt64
    /// Nil after the stream is closed; then all methods have no effect.
    private(set) var session: HTTP2Session?
    private var consumer = Consumer.none

    // The head.
    private(set) var path = ""
    private var isPost = false
    private(set) var headers = HeaderBlock()
    /// The memory that the stream counts for, while it is open.
    private(set) var heldBytes = 0
    private var isHeadComplete = false
    private var grpcFields = GRPCRequestFields()

    // Input.
    private(set) var isRemoteClosed = false
    /// Received bytes that are not consumed: the connection's window gets them back when the stream ends.
    private var unconsumedBytes = 0
    private var progress: BodyProgress

    // Output.
    private var output = OutputQueue()
    private var isHeadSubmitted = false
    private var isDeferred = false
    /// The handler has ended the response.
    private(set) var isAnswered = false
    private var trailers = Trailers.none
    private var isAwaitingCapacity = false
    private var lastOutputAt: UInt64
    private var bodyIsWithheld = false

    private enum Trailers {
        case none
        case ok
        case fields(HTTP2Fields)
    }

    /// The size of a stream, a call and nghttp2's state, without the head.
    private static let sizeBytes = 2 << 10

    init(id: Int32, session: HTTP2Session, slot: Int) {
        self.id = id
        self.session = session
        self.slot = slot
        loop = session.channel.loop
        createdAt = loop.now
        lastOutputAt = createdAt
        progress = BodyProgress(now: createdAt)
    }

    var isClosed: Bool { session == nil }
    var queuedBytes: Int { output.count }
    private var now: UInt64 { loop.now }

    // MARK: Head

    func receivedHead(_ fields: FieldBuffer, isTooLarge: Bool) {
        isHeadComplete = true
        guard let session else { return }
        let isHeld = session.hold(HTTP2Stream.sizeBytes + fields.bytes.count)
        if isHeld {
            heldBytes = HTTP2Stream.sizeBytes + fields.bytes.count
            headers = HeaderBlock(fields)
        }
        var grpc = GRPCRequestFields()
        HeaderBlock.forEach(fields.bytes) { name, value in
            if name.first == UInt8(ascii: ":") {
                receivedPseudoField(name: name, value: value)
            } else {
                grpc.note(name: name, value: value)
            }
            return true
        }
        if isTooLarge {
            refuseHead(isGRPC: grpc.isGRPC, 431, "the request head is too large")
        } else if !isHeld {
            refuseHead(isGRPC: grpc.isGRPC, 503, HeldRequests.tooMany)
        } else if grpc.isGRPC && isPost {
            session.context.counters.grpcCalls.add(1)
            let call = GRPCCall(stream: self, context: session.context)
            consumer = .call(call)
            grpcFields = grpc
        } else {
            makeExchange(session)
        }
        if session.mustPark { session.park(self) } else { beginConsumer() }
    }

    /// Passes the request to its handler.
    func beginConsumer() {
        guard let session else { return }
        switch consumer {
        case .none: break
        case .call(let call): call.begin(session.context.grpc, grpcFields)
        case .exchange(let exchange):
            exchange.begin(session.context.http)
            if headers.firstValue("expect") == "100-continue", !isRemoteClosed, !isHeadSubmitted { submitContinue() }
        }
    }

    private func receivedPseudoField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        // An exchange finds the others in the block. Their second letters differ; nghttp2 has rejected all other names.
        guard name.count > 2 else { return }
        switch name[1] {
        case UInt8(ascii: "p") where name[2] == UInt8(ascii: "a"): path = String(decoding: value, as: UTF8.self)
        case UInt8(ascii: "m"): isPost = value.equals("POST")
        default: break
        }
    }

    private func makeExchange(_ session: HTTP2Session) {
        let context = session.context
        context.counters.httpRequests.add(1)
        let fields = headers.headers
        let declared = fields.firstValue("content-length").flatMap { Int($0) } ?? 0
        guard declared <= context.limits.bodyBytesMax else {
            return respond(
                status: 413, headers: [ContentTooLarge.contentType],
                body: ContentTooLarge.body(limitBytes: context.limits.bodyBytesMax))
        }
        guard path.utf8.count <= context.limits.targetBytesMax else {
            return refuse(status: 414, "the request target is longer than \(context.limits.targetBytesMax) bytes")
        }
        let method = headers.firstValue(":method") ?? ""
        bodyIsWithheld = method == "HEAD"
        let named = headers.firstValue(":authority") ?? ""
        let authority = named.isEmpty ? fields.firstValue("host") ?? "" : named
        guard Authority.isValid(authority) else { return refuse(status: 400, "malformed authority") }
        let head = HTTPRequestHead(
            method: method, target: path, authority: authority, scheme: headers.firstValue(":scheme") ?? "",
            headers: fields, version: .http2, remoteAddress: session.channel.remoteAddress,
            connectionNumber: session.channel.number, isSecure: session.channel.isSecure)
        let exchange = HTTPExchange(
            loop: loop, head: head, transport: self, bodyBytesMax: context.limits.bodyBytesMax,
            input: session.input)
        consumer = .exchange(exchange)
    }

    /// curl waits one second for it before it sends a large body.
    private func submitContinue() {
        guard let session else { return }
        _ = HTTP2Fields(status: 100).withFields {
            nghttp2_submit_headers(session.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, $0, $1, nil)
        }
        session.flushLater()
    }

    private func refuseHead(isGRPC: Bool, _ status: Int, _ reason: String) {
        session?.context.counters.badRequests.add(1)
        guard isGRPC else { return refuse(status: status, reason) }
        var fields = HTTP2Fields(status: 200)
        fields.append("content-type", "application/grpc")
        GRPCStatusFields.append(.resourceExhausted(reason), to: &fields)
        submitWhole(fields)
    }

    private func refuse(status: Int, _ reason: String) {
        respond(
            status: status, headers: [HTTPHeader("content-type", "text/plain")], body: Array((reason + "\n").utf8))
    }

    // MARK: Input

    func receivedData(_ bytes: UnsafeRawBufferPointer) {
        guard let session else { return }
        unconsumedBytes += bytes.count
        progress.received(bytes.count, now: now, limits: session.context.limits)
        switch consumer {
        case .none: consumed(bytes.count)
        case .exchange(let exchange): exchange.receivedBody(bytes)
        case .call(let call): call.received(bytes)
        }
    }

    func receivedEnd() {
        isRemoteClosed = true
        switch consumer {
        case .none: break
        case .exchange(let exchange): exchange.receivedEnd()
        case .call(let call): call.receivedEnd()
        }
    }

    /// The handler has consumed these bytes: the client may send as many more.
    func consumed(_ bytes: Int) {
        guard let session, bytes > 0 else { return }
        unconsumedBytes -= bytes
        nghttp2_session_consume(session.session, id, bytes)
        session.flushLater()
    }

    // MARK: Output

    func submitHead(_ fields: HTTP2StaticFields) {
        submitHead(fields.pointer, fields.count)
    }

    private func submitHead(_ fields: UnsafePointer<nghttp2_nv>?, _ count: Int) {
        guard let session, !isHeadSubmitted else { return }
        isHeadSubmitted = true
        lastOutputAt = now
        var provider = http2_data_provider(Unmanaged.passUnretained(self).toOpaque(), readOutput)
        nghttp2_submit_response(session.session, id, fields, count, &provider)
        session.flushLater()
    }

    /// A head without a body.
    func submitWhole(_ fields: HTTP2Fields) {
        guard let session, !isHeadSubmitted else { return }
        isHeadSubmitted = true
        isAnswered = true
        _ = fields.withFields { nghttp2_submit_response(session.session, id, $0, $1, nil) }
        session.flushLater()
    }

    /// False: the queue is full; `becameWritable` follows.
    func queue(_ bytes: [UInt8], prefix: GRPCPrefix? = nil) -> Bool {
        guard let session, !isAnswered else { return false }
        let before = output.count
        if before == 0 { lastOutputAt = now }
        output.append(bytes, prefix: prefix)
        session.queued(output.count - before)
        wakeOutput()
        return hasCapacity(session)
    }

    private func hasCapacity(_ session: HTTP2Session) -> Bool {
        guard output.count >= session.context.answerHighWaterBytes || session.isAboveHighWater else {
            return true
        }
        if !isAwaitingCapacity {
            isAwaitingCapacity = true
            session.waitsForCapacity(self)
        }
        return false
    }

    func becameWritable() {
        isAwaitingCapacity = false
        switch consumer {
        case .none: break
        case .exchange(let exchange): exchange.becameWritable()
        case .call(let call): call.becameWritable()
        }
    }

    func endOutputOK() {
        trailers = .ok
        endOutput()
    }

    func endOutput(trailers fields: HTTP2Fields) {
        trailers = .fields(fields)
        endOutput()
    }

    private func endOutput() {
        guard !isAnswered else { return }
        isAnswered = true
        wakeOutput()
    }

    private func wakeOutput() {
        guard let session else { return }
        if isDeferred {
            isDeferred = false
            nghttp2_session_resume_data(session.session, id)
        }
        session.flushLater()
    }

    func reset(_ code: nghttp2_error_code) {
        isAnswered = true
        dropOutput()
        session?.reset(id, code: code)
    }

    private func dropOutput() {
        session?.dequeued(output.count)
        output.removeAll()
    }

    /// Returns the size of the next DATA frame; `sendData` then copies it.
    fileprivate func prepareData(_ lengthMax: Int, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
        let length = min(lengthMax, output.count)
        guard length > 0 || isAnswered else {
            isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        if length > 0 { flags.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue }
        guard isAnswered, length == output.count else { return length }
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        switch trailers {
        case .none: break
        case .ok:
            flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
            nghttp2_submit_trailer(
                session?.session, id, HTTP2StaticFields.grpcOK.pointer, HTTP2StaticFields.grpcOK.count)
        case .fields(let fields):
            flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
            _ = fields.withFields { nghttp2_submit_trailer(session?.session, id, $0, $1) }
        }
        return length
    }

    func sendData(_ header: UnsafePointer<UInt8>, _ length: Int) -> Int32 {
        guard let session else { return NGHTTP2_ERR_CALLBACK_FAILURE }
        let scratch = loop.scratch
        // nghttp2 continues with the next frame in the same call, and returns that one if it is not DATA: the space for
        // it must remain. Otherwise the scratch is flushed first, and nghttp2 calls again.
        guard scratch.space >= HTTP2Stream.frameHeaderBytes + length + HTTP2Session.frameSpaceBytes else {
            return NGHTTP2_ERR_WOULDBLOCK
        }
        // The output may have been dropped after its frame was announced.
        guard length <= output.count else { return Int32(CNghttp2.NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE) }
        do throws(BrokenInvariant) {
            try scratch.append(header, HTTP2Stream.frameHeaderBytes)
            try output.move(length, into: scratch)
        } catch {
            session.broke(error)
            return NGHTTP2_ERR_CALLBACK_FAILURE
        }
        session.dequeued(length)
        lastOutputAt = loop.now
        return 0
    }

    private static let frameHeaderBytes = 9

    // MARK: End

    /// The session has released the stream, or the connection has released the session.
    func closed() {
        guard let session else { return }
        session.dequeued(output.count)
        output.removeAll()
        if unconsumedBytes > 0, !session.channel.isClosed {
            nghttp2_session_consume_connection(session.session, unconsumedBytes)
        }
        self.session = nil
        isAnswered = true
        let consumer = consumer
        self.consumer = .none
        switch consumer {
        case .none: break
        case .exchange(let exchange): exchange.cancel()
        case .call(let call): call.cancel()
        }
    }

    /// The server ends the stream.
    func giveUp(_ status: Status) {
        if case .call(let call) = consumer, !call.isFinished {
            call.giveUp(status)
        } else if !isAnswered {
            let consumer = consumer
            reset(NGHTTP2_CANCEL)
            if case .exchange(let exchange) = consumer { exchange.cancel() }
        }
    }

    func checkTimeouts(now: UInt64, limits: NetworkLimits) -> Progress {
        func isOver(_ since: UInt64, _ milliseconds: Int) -> Bool {
            now > since && now - since > UInt64(milliseconds) * 1_000_000
        }
        guard isHeadComplete else { return isOver(createdAt, limits.headMilliseconds) ? .headIsStuck : .fine }
        if isHeadSubmitted, !output.isEmpty || isAnswered, isOver(lastOutputAt, limits.writeStallMilliseconds) {
            abandon(.unavailable("the answer was not read for too long"))
            return .streamIsStuck
        }
        if !isExpectingInput {
            progress.wait(now: now)
        } else if progress.isTooSlow(now: now, limits: limits) {
            switch consumer {
            case .call(let call): call.giveUp(Status(.deadlineExceeded, "the request message took too long"))
            case .exchange, .none: abandon(Status(.deadlineExceeded, "the request body took too long"))
            }
            return .streamIsStuck
        }
        return .fine
    }

    private var isExpectingInput: Bool {
        guard !isRemoteClosed, !isAnswered else { return false }
        switch consumer {
        case .none: return false
        case .exchange(let exchange): return !exchange.isHoldingInput
        case .call(let call): return call.isExpectingInput
        }
    }

    private func abandon(_ status: Status) {
        let consumer = consumer
        reset(NGHTTP2_CANCEL)
        switch consumer {
        case .none: break
        case .exchange(let exchange): exchange.cancel()
        case .call(let call): call.cancel()
        }
    }
}

/// nghttp2 requests the next bytes of a response.
private func readOutput(
    _ session: OpaquePointer?, _ id: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let flags, let pointer = source?.pointee.ptr else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE) }
    return Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeUnretainedValue().prepareData(length, flags)
}

extension HTTP2Stream: ExchangeTransport {
    /// WebSocket over HTTP/2 (RFC 8441) is not offered, and so not requested.
    func upgradeToWebSocket(
        fields: [HTTPHeader], limits: WebSocketLimits, deflate: WebSocketDeflate?
    ) -> WebSocketChannel? { nil }

    func respond(status: Int, headers: [HTTPHeader], body: [UInt8]) {
        var fields = answerFields(status: status, headers: headers)
        let hasNoBody = status == 204 || status == 304
        if !hasNoBody, headers.firstValue("content-length") == nil {
            fields.append("content-length", String(body.count))
        }
        if body.isEmpty || bodyIsWithheld || hasNoBody { return submitWhole(fields) }
        fields.withFields { submitHead($0, $1) }
        _ = queue(body)
        endOutput()
    }

    func start(status: Int, headers: [HTTPHeader]) {
        let fields = answerFields(status: status, headers: headers)
        // The response to HEAD ends with its head; later output is dropped.
        if bodyIsWithheld { return submitWhole(fields) }
        fields.withFields { submitHead($0, $1) }
    }

    func write(_ bytes: [UInt8]) -> Bool { queue(bytes) || bodyIsWithheld }

    func end(trailers headers: [HTTPHeader]) {
        if !headers.isEmpty {
            var fields = HTTP2Fields()
            fields.append(headers)
            trailers = .fields(fields)
        }
        endOutput()
    }

    func abort() { reset(NGHTTP2_INTERNAL_ERROR) }

    /// No action: a handler that reads no bytes does not consume them, and the window closes.
    func setReadingPaused(_ isPaused: Bool) {}

    private func answerFields(status: Int, headers: [HTTPHeader]) -> HTTP2Fields {
        var fields = HTTP2Fields(status: status)
        fields.append(headers)
        if headers.firstValue("date") == nil { fields.append("date", utf8: loop.currentDate()) }
        return fields
    }
}
