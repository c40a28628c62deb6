import HearthConcurrency
import HearthModel
import HearthWebSocket

/// One request and its response. All methods are called on `loop`'s thread, and all callbacks run on it.
///
/// Calls after the end of the exchange (answered, or `onCancel` was called) have no effect, so a handler need not check
/// for it. A callback that is set after the end is released immediately: otherwise it would retain the exchange, and
/// the handler's objects, forever.
///
/// `@unchecked Sendable`: guarded by the loop's thread; handlers pass it through closures that return to that thread.
package final class HTTPExchange: @unchecked Sendable {
    package let loop: EventLoop
    package let head: HTTPRequestHead

    /// Receives pieces of the body, valid during the call. Input that arrives before it is set waits.
    package var onBody: ((UnsafeRawBufferPointer) -> Void)? {
        didSet { if isFinished { onBody = nil } else { deliverLater() } }
    }
    /// The body is complete.
    package var onEnd: (() -> Void)? { didSet { if isFinished { onEnd = nil } else { deliverLater() } } }
    /// The client disconnected before the response ended. Called at most once, and no callback follows.
    package var onCancel: (() -> Void)? { didSet { if isFinished { onCancel = nil } } }
    /// Called after a `write` that returned false, when the queue has space again.
    package var onWritable: (() -> Void)? { didSet { if isFinished { onWritable = nil } } }

    private weak var transport: (any ExchangeTransport)?
    private let bodyBytesMax: Int
    private let input: HeldInput
    private var buffered: [UInt8] = []
    private var receivedBytes = 0
    private var reservedBytes = 0
    private var isInputComplete = false
    /// The handler's limit for the body was exceeded: the HTTP status is 413, whatever reason the response contains.
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

    /// Whether the exchange is answered or cancelled.
    package var isFinished: Bool { hasEnded || isCancelled }

    // MARK: Request

    /// Collects the whole body. `done` gets INVALID_ARGUMENT above the limit, with `isBodyTooLarge` set, and is not
    /// called when the client disconnects.
    package func collectBody(
        limitBytes: Int, for requester: Requester? = nil, _ done: @escaping (Result<[UInt8], Status>) -> Void
    ) {
        if let requester { input.identified(requester) }
        let tooLarge = Status.invalidArgument("Request payload size exceeds the limit: \(limitBytes) bytes.")
        var body: [UInt8] = []
        var isOver = false
        // A declared length far above the limit fails immediately. A body that is slightly too large is read, so that
        // its connection can be reused.
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

    /// Stops `onBody` until `resumeReading`; the client is paused when the window is full.
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

    /// Sends a whole response, with its length.
    package func respond(status: Int, headers: [HTTPHeader], body: [UInt8]) {
        checkThread()
        guard !isFinished, mayStart() else { return }
        finish { $0.respond(status: status, headers: headers, body: body) }
    }

    /// Begins a response of unknown length (unless the headers contain `content-length`).
    package func start(status: Int, headers: [HTTPHeader]) {
        checkThread()
        guard !isFinished, mayStart() else { return }
        transport?.start(status: status, headers: headers)
    }

    /// False: the queue is above its limit; wait for `onWritable`. The bytes are accepted in any case.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        checkThread()
        guard !isFinished, let transport else { return false }
        guard hasStarted else {
            broke(BrokenInvariant("a response begins with start"))
            return false
        }
        return transport.write(bytes)
    }

    package func end(trailers: [HTTPHeader] = []) {
        checkThread()
        guard !isFinished else { return }
        guard hasStarted else { return broke(BrokenInvariant("a response begins with start")) }
        finish { $0.end(trailers: trailers) }
    }

    /// Aborts the response visibly for the client: by RST_STREAM, or by closing the connection.
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
        guard !hasStarted else {
            broke(BrokenInvariant("a request whose response has begun is not upgraded"))
            return nil
        }
        guard let channel = transport?.upgradeToWebSocket(fields: fields, limits: limits, deflate: deflate) else {
            return nil
        }
        hasStarted = true
        finish { _ in }
        return channel
    }

    /// An error of the handler, often in error handling that tests do not reach. The client must see that the response is
    /// broken, and other clients must not be affected.
    private func broke(_ broken: BrokenInvariant) {
        loop.brokenInvariants.note(broken)
        abort()
    }

    private func mayStart() -> Bool {
        guard !hasStarted else {
            broke(BrokenInvariant("a request has one response"))
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
        loop.note(method: head.method, path: head.path)
        handler.begin(self)
        isBeginning = false
        deliver()
    }

    var bufferedBytes: Int { buffered.count }

    /// The handler has paused reading; the client is not at fault.
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

    /// The handler's closures retain the exchange, and it retains them: the end breaks the cycle.
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
