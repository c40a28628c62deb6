import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthWire

/// A REST request, as the service sees it. `@unchecked Sendable`: belongs to the exchange's loop.
///
/// A unary response is one JSON object. A streamed one is a JSON array, written message by message. An error before the
/// first message sets the HTTP status and is the only element of the array; a later one is the array's last element.
package final class RESTCall: ServiceCall, @unchecked Sendable {
    private let exchange: HTTPExchange
    private let isStreaming: Bool
    private let headers: [HTTPHeader]
    private var body: [UInt8]?
    private var hasStarted = false
    package let cancellation = Cancellation()
    package let format: MessageFormat
    package let identity: Identity
    package let requester: Requester
    package let onceValues: [String]
    package let triggersValues: [String]
    /// Nil when the request has ended.
    private var observation: RequestObserver.Observation?

    package init(
        _ exchange: HTTPExchange, isStreaming: Bool, options: JSONOptions, identity: Identity = .nobody,
        observation: RequestObserver.Observation? = nil
    ) {
        self.exchange = exchange
        self.isStreaming = isStreaming
        self.identity = identity
        requester = identity.requester(
            at: exchange.head.remoteAddress, connection: exchange.head.connectionNumber)
        onceValues = exchange.head.firstValue(OnceHeader.name) == nil ? [] : exchange.head.values(OnceHeader.name)
        triggersValues =
            exchange.head.firstValue(TriggersHeader.name) == nil ? [] : exchange.head.values(TriggersHeader.name)
        self.observation = observation
        format = .json(options)
        headers =
            [HTTPHeader("content-type", "application/json; charset=UTF-8")] + CORS.headers(for: exchange.head)
            + TriggersHeader.acknowledgement(of: triggersValues)
        let cancellation = cancellation
        exchange.onCancel = { [weak self] in
            cancellation.cancel()
            self?.observed(Status(.cancelled, "The client has disconnected."))
        }
    }

    private func observed(_ status: Status) {
        observation?.end(status, on: loop)
        observation = nil
    }

    package var loop: EventLoop { exchange.loop }
    package var isFinished: Bool { exchange.isFinished || cancellation.isCancelled }

    package var onWritable: (() -> Void)? {
        get { exchange.onWritable }
        set { exchange.onWritable = newValue }
    }

    package func send(_ message: [UInt8]) -> Bool {
        guard isStreaming else {
            body = message
            return true
        }
        if hasStarted { return exchange.write([UInt8(ascii: ","), UInt8(ascii: "\n")] + message) }
        hasStarted = true
        exchange.start(status: 200, headers: headers)
        return exchange.write([UInt8(ascii: "[")] + message)
    }

    /// Records the status of a call that other code answers.
    package func end(_ status: Status) { observed(status) }

    package func finish(_ status: Status) {
        if isFinished { return }
        observed(status)
        if isStreaming { return finishStream(status) }
        if status.code == .ok {
            exchange.respond(status: 200, headers: headers, body: body ?? Array("{}".utf8))
        } else {
            exchange.respond(status: httpStatus(status), headers: headers, body: errorBody(status))
        }
    }

    private func httpStatus(_ status: Status) -> Int { exchange.isBodyTooLarge ? 413 : status.code.httpStatus }

    private func errorBody(_ status: Status) -> [UInt8] { ErrorBody.json(status, http: httpStatus(status)) }

    private func finishStream(_ status: Status) {
        guard hasStarted else {
            let elements = status.code == .ok ? [] : errorBody(status)
            return exchange.respond(
                status: httpStatus(status), headers: headers,
                body: [UInt8(ascii: "[")] + elements + [UInt8(ascii: "]")])
        }
        if status.code != .ok { exchange.write([UInt8(ascii: ","), UInt8(ascii: "\n")] + ErrorBody.json(status)) }
        exchange.write([UInt8(ascii: "]")])
        exchange.end()
    }
}
