import HearthConcurrency
import HearthModel
import HearthWebSocket

/// Takes HTTP requests. `begin` is called on the loop's thread when a head is complete.
package protocol HTTPHandler: Sendable {
    func begin(_ exchange: HTTPExchange)
}

/// What carries an exchange: a stream of HTTP/2 or a turn of an HTTP/1.1 connection.
protocol ExchangeTransport: AnyObject {
    func respond(status: Int, headers: [HTTPHeader], body: [UInt8])
    func start(status: Int, headers: [HTTPHeader])
    func write(_ bytes: [UInt8]) -> Bool
    func end(trailers: [HTTPHeader])
    func abort()
    /// The handler has taken (or will never want) this many bytes of the body.
    func consumed(_ bytes: Int)
    func setReadingPaused(_ isPaused: Bool)
    /// Goes on as a WebSocket. Nil: it can't.
    func upgradeToWebSocket(
        fields: [HTTPHeader], limits: WebSocketLimits, deflate: WebSocketDeflate?
    ) -> WebSocketChannel?
}

/// One request and its answer. All methods are called on `loop`'s thread, and all callbacks come on it.
///
/// Calls after the end of the exchange (answered, or `onCancel` was called) do nothing: a handler that waited for
/// something need not ask first whether anybody still listens. A callback that is set after the end is let go at once: it
/// would hold the exchange, and whatever the handler has for it, for ever.
///
/// `@unchecked Sendable`: guarded by the loop's thread; handlers carry it through closures that come back to it.
package final class HTTPExchange: @unchecked Sendable {
    package let loop: EventLoop
    package let head: HTTPRequestHead

    /// Pieces of the body, valid during the call. What arrives before it is set waits.
    package var onBody: ((UnsafeRawBufferPointer) -> Void)? {
        didSet { if isFinished { onBody = nil } else { deliverLater() } }
    }
    /// The body is complete.
    package var onEnd: (() -> Void)? { didSet { if isFinished { onEnd = nil } else { deliverLater() } } }
    /// The peer went away before the answer ended. Called at most once, and nothing after it.
    package var onCancel: (() -> Void)? { didSet { if isFinished { onCancel = nil } } }
    /// After a `write` that returned false: there is room again.
    package var onWritable: (() -> Void)? { didSet { if isFinished { onWritable = nil } } }

    private weak var transport: (any ExchangeTransport)?
    private let bodyBytesMax: Int
    private let input: HeldInput
    private var buffered: [UInt8] = []
    private var receivedBytes = 0
    private var reservedBytes = 0
    private var isInputComplete = false
    /// The handler's limit for the body was exceeded: whatever the reason in the answer, its HTTP status is 413.
    package private(set) var isBodyTooLarge = false
    private var isReadingPaused = false
    private var isBeginning = true
    private var isDeliveryScheduled = false
    private var hasStarted = false
    private var hasEnded = false
    private var isCancelled = false

    init(
        loop: EventLoop, head: HTTPRequestHead, transport: any ExchangeTransport, bodyBytesMax: Int,
        input: HeldInput
    ) {
        self.loop = loop
        self.head = head
        self.transport = transport
        self.bodyBytesMax = bodyBytesMax
        self.input = input
    }

    /// Answered or cancelled.
    package var isFinished: Bool { hasEnded || isCancelled }

    // MARK: Request

    /// Gathers the whole body. `done` gets INVALID_ARGUMENT above the limit, with `isBodyTooLarge` set, and isn't called when
    /// the peer goes.
    package func collectBody(
        limitBytes: Int, for requester: Requester? = nil, _ done: @escaping (Result<[UInt8], Status>) -> Void
    ) {
        if let requester { input.identified(requester) }
        let tooLarge = Status.invalidArgument("Request payload size exceeds the limit: \(limitBytes) bytes.")
        var body: [UInt8] = []
        var isOver = false
        // Nothing is waited for of a body that says itself that it is far too large. One that is a little too large is read,
        // so that its connection can be used on.
        if let declared = head.firstValue("content-length").flatMap({ Int($0) }), declared / 4 > limitBytes {
            isBodyTooLarge = true
            return done(.failure(tooLarge))
        }
        onBody = { [unowned self] bytes in
            guard !isOver else { return }
            guard body.count + bytes.count <= limitBytes else {
                isOver = true
                body = []
                isBodyTooLarge = true
                return done(.failure(tooLarge))
            }
            guard reserve(bytes.count) else {
                isOver = true
                body = []
                return done(.failure(.unavailable("the server holds too many unfinished requests")))
            }
            body.append(contentsOf: bytes)
        }
        onEnd = { [unowned self] in
            releaseReserved()
            if !isOver { done(.success(body)) }
        }
    }

    /// No more `onBody` until `resumeReading`; the peer is held back once the window is full.
    package func pauseReading() {
        checkThread()
        guard !isReadingPaused, !isFinished else { return }
        isReadingPaused = true
        transport?.setReadingPaused(true)
    }

    package func resumeReading() {
        checkThread()
        guard isReadingPaused, !isFinished else { return }
        isReadingPaused = false
        transport?.setReadingPaused(false)
        deliverLater()
    }

    // MARK: Answer

    /// A whole answer, with its length.
    package func respond(status: Int, headers: [HTTPHeader], body: [UInt8]) {
        checkThread()
        guard !isFinished, mayStart() else { return }
        finish { $0.respond(status: status, headers: headers, body: body) }
    }

    /// Begins an answer whose length isn't known (unless the headers carry `content-length`).
    package func start(status: Int, headers: [HTTPHeader]) {
        checkThread()
        guard !isFinished, mayStart() else { return }
        transport?.start(status: status, headers: headers)
    }

    /// False: more is queued than should be; wait for `onWritable`. The bytes are taken in any case.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        checkThread()
        guard !isFinished, let transport else { return false }
        precondition(hasStarted, "an answer begins with start")
        return transport.write(bytes)
    }

    package func end(trailers: [HTTPHeader] = []) {
        checkThread()
        guard !isFinished else { return }
        precondition(hasStarted, "an answer begins with start")
        finish { $0.end(trailers: trailers) }
    }

    /// Breaks the answer off so that the peer sees it: RST_STREAM, or the connection is closed.
    package func abort() {
        checkThread()
        guard !isFinished else { return }
        finish { $0.abort() }
    }

    /// Ends the exchange when it succeeds.
    func upgrade(
        _ fields: [HTTPHeader], _ limits: WebSocketLimits, _ deflate: WebSocketDeflate?
    ) -> WebSocketChannel? {
        checkThread()
        precondition(!hasStarted, "an answer has begun")
        guard let channel = transport?.upgradeToWebSocket(fields: fields, limits: limits, deflate: deflate) else {
            return nil
        }
        hasStarted = true
        finish { _ in }
        return channel
    }

    /// A second head is a mistake of the handler, and one in an error's path that tests easily miss: the client must
    /// see that the answer is broken, and nobody else may suffer from it.
    private func mayStart() -> Bool {
        assert(!hasStarted, "an exchange is answered once")
        guard !hasStarted else {
            abort()
            return false
        }
        hasStarted = true
        return true
    }

    private func finish(_ last: (any ExchangeTransport) -> Void) {
        hasEnded = true
        let transport = transport
        forgetHandler()
        if let transport { last(transport) }
    }

    // MARK: Called by the transport

    func begin(_ handler: any HTTPHandler) {
        handler.begin(self)
        isBeginning = false
        deliver()
    }

    var bufferedBytes: Int { buffered.count }

    /// It is the handler that doesn't read, not the peer that doesn't send.
    var isHoldingInput: Bool { isReadingPaused || !buffered.isEmpty }

    func receivedBody(_ bytes: UnsafeRawBufferPointer) {
        receivedBytes += bytes.count
        guard receivedBytes <= bodyBytesMax || isFinished else {
            return refuseBody(413, "The request body is larger than \(bodyBytesMax) bytes.")
        }
        if isFinished {
            transport?.consumed(bytes.count)
        } else if let onBody, buffered.isEmpty, !isReadingPaused, !isBeginning {
            onBody(bytes)
            transport?.consumed(bytes.count)
        } else {
            guard input.take(bytes.count) else {
                return refuseBody(503, "The server holds too many unfinished requests.")
            }
            buffered.append(contentsOf: bytes)
        }
    }

    func receivedEnd() {
        isInputComplete = true
        if !isBeginning { deliver() }
    }

    func becameWritable() { onWritable?() }

    func cancel() {
        guard !isFinished else { return }
        isCancelled = true
        let onCancel = onCancel
        forgetHandler()
        transport = nil
        onCancel?()
    }

    private func refuseBody(_ status: Int, _ reason: String) {
        let transport = transport
        let onCancel = onCancel
        isCancelled = true
        forgetHandler()
        if hasStarted {
            transport?.abort()
        } else {
            let isTooLarge = status == 413
            transport?.respond(
                status: status,
                headers: [isTooLarge ? ContentTooLarge.contentType : HTTPHeader("content-type", "text/plain")],
                body: isTooLarge ? ContentTooLarge.body(limitBytes: bodyBytesMax) : Array("\(reason)\n".utf8))
        }
        onCancel?()
    }

    private func deliverLater() {
        guard !isBeginning, !isDeliveryScheduled, !isFinished, !buffered.isEmpty || isInputComplete else { return }
        isDeliveryScheduled = true
        loop.execute { [self] in
            isDeliveryScheduled = false
            deliver()
        }
    }

    private func deliver() {
        guard !isFinished, !isReadingPaused else { return }
        if !buffered.isEmpty {
            guard let onBody else { return }
            let bytes = buffered
            buffered = []
            input.give(bytes.count)
            bytes.withUnsafeBytes { onBody($0) }
            transport?.consumed(bytes.count)
        }
        guard isInputComplete, !isFinished, !isReadingPaused, let onEnd else { return }
        self.onEnd = nil
        onEnd()
    }

    /// The handler's closures hold the exchange, and it holds them: the end is where the ring is opened.
    private func forgetHandler() {
        onBody = nil
        onEnd = nil
        onCancel = nil
        onWritable = nil
        releaseReserved()
        let waiting = buffered.count
        buffered = []
        if waiting > 0 { input.give(waiting) }
        if waiting > 0 { transport?.consumed(waiting) }
    }

    private func reserve(_ bytes: Int) -> Bool {
        guard input.take(bytes) else { return false }
        reservedBytes += bytes
        return true
    }

    private func releaseReserved() {
        if reservedBytes > 0 { input.give(reservedBytes) }
        reservedBytes = 0
    }

    private func checkThread() { assert(loop.isCurrent, "an exchange belongs to its loop's thread") }
}
