import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree

/// One REST request on the Realtime Database, and the forms of its answer.
///
/// `@unchecked Sendable`: belongs to the exchange's loop.
final class RealtimeCall: @unchecked Sendable {
    let exchange: HTTPExchange
    let parameters: RealtimeParameters
    /// After overrides: `HEAD` is `GET`.
    let method: String
    /// Of the request's arrival.
    let startNanoseconds = EventLoop.monotonicNanoseconds()
    let cancellation = Cancellation()
    /// The account of the request; nobody's until the identity is known.
    var requester: Requester
    /// The client has disconnected, or the event stream cannot continue.
    var onCancel: (() -> Void)?
    /// Nil when the request has ended.
    private var observation: RequestObserver.Observation?

    init(
        _ exchange: HTTPExchange, _ parameters: RealtimeParameters, method: String,
        observation: RequestObserver.Observation
    ) {
        self.exchange = exchange
        self.parameters = parameters
        self.method = method
        requester = Identity.nobody.requester(
            at: exchange.head.remoteAddress, connection: exchange.head.connectionNumber)
        self.observation = observation
        let cancellation = cancellation
        exchange.onCancel = { [weak self] in
            cancellation.cancel()
            self?.end(Status(.cancelled, "The client has disconnected."))
            self?.onCancel?()
            self?.onCancel = nil
        }
    }

    var loop: EventLoop { exchange.loop }
    var head: HTTPRequestHead { exchange.head }

    /// Whether the answer is a stream of future events.
    var wantsEvents: Bool {
        parameters.wantsEvents
            || head.values("accept").contains { $0.lowercased().contains("text/event-stream") }
    }

    /// Whether the answer must contain a tag of its content.
    var wantsTag: Bool { head.firstValue("x-firebase-etag")?.lowercased() == "true" }

    /// Runs `body` on the call's loop: now when this is its thread.
    func onLoop(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }

    /// - Throws: INVALID_ARGUMENT when the request has exceeded its own time limit, CANCELLED when the client has
    ///   disconnected.
    func checkTime() throws(Status) {
        try cancellation.check()
        let passed = (EventLoop.monotonicNanoseconds() - startNanoseconds) / 1_000_000
        if passed > UInt64(parameters.timeoutMilliseconds) { throw .invalidArgument("Query timed out.") }
    }

    /// Reports how the request ended.
    private func end(_ status: Status) {
        observation?.end(status, on: loop)
        observation = nil
    }

    // MARK: Answers

    /// A value, in the requested form.
    /// - Parameters:
    ///   - json: compact.
    ///   - tag: the value of `ETag`; nil for none.
    func respond(_ json: [UInt8], tag: String? = nil) {
        if exchange.isFinished { return }
        end(.ok)
        var headers = self.headers(tag: tag)
        if parameters.form == .silent { return exchange.respond(status: 204, headers: headers, body: []) }
        var body = json
        if parameters.form == .pretty { body = PrettyJSON.string(json) }
        if let callback = parameters.callback { body = Self.call(callback, body) }
        headers.append(contentsOf: contentHeaders)
        exchange.respond(status: 200, headers: headers, body: body)
    }

    /// A large value that was written to a file already, in the requested form.
    func respond(_ file: SpillFile, tag: String?, readers: WorkerGroup) {
        if exchange.isFinished { return }
        var headers = self.headers(tag: tag)
        headers.append(contentsOf: contentHeaders)
        headers.append(HTTPHeader("content-length", String(file.count)))
        if head.method == "HEAD" {
            end(.ok)
            return exchange.respond(status: 200, headers: headers, body: [])
        }
        exchange.start(status: 200, headers: headers)
        FileSender(file, exchange, readers, for: requester) { [self] in end($0) }.proceed()
    }

    /// The value is the same as the client's.
    func respondUnchanged(tag: String) {
        end(.ok)
        exchange.respond(status: 304, headers: headers(tag: tag), body: [])
    }

    /// The condition of a write is not met.
    /// - Parameters:
    ///   - current: the present value, or `null` for a client that may not read it.
    ///   - tag: the value's tag, for a client that may read it.
    func conflict(_ current: [UInt8], tag: String?) {
        if exchange.isFinished { return }
        end(.failedPrecondition("The value has another tag."))
        exchange.respond(status: 412, headers: headers(tag: tag) + [Self.json], body: current)
    }

    /// - Parameter http: the HTTP status for the code; nil for the usual one.
    func fail(_ status: Status, http: Int? = nil) {
        if exchange.isFinished { return }
        end(status)
        exchange.respond(
            status: http ?? Self.httpStatus(status), headers: headers(tag: nil) + [Self.json],
            body: Self.body(ofError: status.message))
    }

    /// Receives the rest of the body before the answer is sent: some clients lose an answer that ends their upload.
    func failAfterBody(_ status: Status) {
        exchange.onBody = { _ in }
        exchange.onEnd = { [self] in fail(status) }
    }

    /// Begins an endless answer of events.
    func startEvents() {
        exchange.start(
            status: 200,
            headers: headers(tag: nil) + [HTTPHeader("content-type", "text/event-stream; charset=utf-8")])
    }

    /// - Parameter isWhole: false when the last event is incomplete; only an incomplete answer shows this to the
    ///   client.
    func endEvents(_ status: Status, isWhole: Bool = true) {
        if exchange.isFinished { return }
        end(status)
        if isWhole { exchange.end() } else { exchange.abort() }
    }

    // MARK: Parts of answers

    private static let json = HTTPHeader("content-type", "application/json; charset=utf-8")

    private func headers(tag: String?) -> [HTTPHeader] {
        var headers = [HTTPHeader("cache-control", "no-cache")]
        if head.firstValue("origin") == nil {
            headers.append(HTTPHeader("access-control-allow-origin", "*"))
        } else {
            headers += CORS.headers(for: head)
        }
        if let tag { headers.append(HTTPHeader("etag", tag)) }
        return headers
    }

    private var contentHeaders: [HTTPHeader] {
        var headers = [
            parameters.callback == nil
                ? Self.json : HTTPHeader("content-type", "application/javascript; charset=utf-8")
        ]
        if parameters.callback != nil { headers.append(HTTPHeader("x-content-type-options", "nosniff")) }
        if let download = parameters.download {
            // Quotes would end the name; control characters are not allowed in a header.
            let name = String(
                decoding: download.utf8.filter { $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C && $0 != 0x7F }, as: UTF8.self)
            headers.append(HTTPHeader("content-disposition", "attachment; filename=\"\(name)\""))
        }
        return headers
    }

    /// The comment prevents a name that begins like another format from being interpreted as that format.
    static func prefix(ofCall function: String) -> [UInt8] { Array("/**/\(function)(".utf8) }
    static let suffixOfCall = Array(");".utf8)

    private static func call(_ function: String, _ json: [UInt8]) -> [UInt8] {
        prefix(ofCall: function) + json + suffixOfCall
    }

    static func body(ofError message: String) -> [UInt8] {
        var body = Array("{\"error\":".utf8)
        TreeJSON.appendString(message, to: &body)
        body += Array("}\n".utf8)
        return body
    }

    /// A missing right is status 401, not 403. Source: the errors of the REST reference.
    static func httpStatus(_ status: Status) -> Int {
        switch status.code {
        case .permissionDenied, .unauthenticated: 401
        // The request was too large, or the server is overloaded.
        case .resourceExhausted: status.message.hasPrefix("Data ") ? 400 : 503
        case .unimplemented: 405
        case .deadlineExceeded: 400
        case .aborted: 409
        default: status.code.httpStatus
        }
    }
}
