import HearthConcurrency
import HearthEvents
import HearthHTTPClient
import HearthModel
import Synchronization

/// Sends events to endpoints over HTTP/1.1, and judges the answers.
///
/// | answer | |
/// |---|---|
/// | 2xx whose body ended, or reached `bodyBytesMax` | acknowledged |
/// | any other status, a body that was cut, no HTTP, nothing within the time, a failure of TLS | failed |
/// | no connection | unreachable |
package final class EventSender: Sendable {
    /// Where the events of a trigger go.
    package struct Target: Sendable, Equatable {
        package var url: String
        /// Sent as `authorization: Bearer`.
        package var secret: String?
        /// For the whole exchange.
        package var timeoutMilliseconds: Int
        /// Whether each event gets a new connection.
        package var opensConnections = false

        package init(url: String, secret: String? = nil, timeoutMilliseconds: Int = 60_000) {
            self.url = url
            self.secret = secret
            self.timeoutMilliseconds = timeoutMilliseconds
        }
    }

    /// Of an answer, of which a delivery needs the first bytes if it is a failure.
    fileprivate static let bodyBytesMax = 64 << 10
    private static let connectMillisecondsMax = 10_000

    private struct Connection: Sendable {
        let transport: Transport
        let client: HTTPClient
    }

    private enum State {
        /// Made by the first event: most servers have no triggers.
        case unused
        case connected(Connection)
        case closed
    }

    private let state = Mutex(State.unused)
    private let clock: any Clock

    package init(clock: any Clock = SystemClock()) { self.clock = clock }

    private func connect() throws(Status) -> Connection {
        try state.withLock { state throws(Status) -> Connection in
            switch state {
            case .connected(let connection): return connection
            case .closed: throw Status(.cancelled, "The server is being stopped.")
            case .unused: break
            }
            let transport = try Transport(name: "hearth-events", idleConnectionsMax: 512)
            transport.loop.execute { NamedThread.giveWay() }
            let new = Connection(transport: transport, client: HTTPClient(transport: transport))
            state = .connected(new)
            return new
        }
    }

    /// Ends all requests without answers; later ones fail.
    package func close() {
        let former = state.withLock { state in
            defer { state = .closed }
            return state
        }
        if case .connected(let connection) = former { connection.transport.shutDown() }
    }

    /// - Parameter done: called once, on the sender's thread; it must not block.
    package func send(
        _ event: EventRequest, to target: Target, attempt: Int,
        _ done: @escaping @Sendable (Delivery.Answer) -> Void
    ) {
        let request = Self.request(event, to: target, attempt: attempt)
        start(request, Exchange(clock: clock) { answer, _ in done(answer) })
    }

    /// What an endpoint has answered, as much as was kept of it.
    package struct Response: Sendable {
        /// 0 without an answer.
        package internal(set) var status = 0
        package internal(set) var headers: [HTTPField] = []
        /// The first bytes of the body.
        package internal(set) var body: [UInt8] = []
        /// Of the body, as far as it was read.
        package internal(set) var bodyBytes = 0
    }

    /// Sends an event in the same way as `send`, for somebody who wants to see the answer.
    /// - Parameters:
    ///   - keptBytesMax: of the answer's body.
    ///   - done: called once, on the sender's thread; it must not block.
    package func test(
        _ event: EventRequest, to target: Target, keptBytesMax: Int,
        _ done: @escaping @Sendable (Delivery.Answer, Response) -> Void
    ) {
        let request = Self.request(event, to: target, attempt: 1)
        start(request, Exchange(keptBytesMax: keptBytesMax, keepsAll: true, clock: clock, done))
    }

    private func start(_ request: HTTPRequest, _ exchange: Exchange) {
        do throws(Status) {
            exchange.started(try connect().client.start(request) { exchange.take($0) })
        } catch {
            exchange.fail(error)
        }
    }

    /// The headers of an event's request, without that of the secret, and without what every request of HTTP has.
    package static func headers(_ event: EventRequest, attempt: Int) -> [HTTPField] {
        event.headers.map { HTTPField($0.name, $0.value) }
            + [HTTPField("x-hearth-attempt", String(attempt)), HTTPField("user-agent", "hearth")]
    }

    private static func request(_ event: EventRequest, to target: Target, attempt: Int) -> HTTPRequest {
        var request = HTTPRequest(method: "POST", url: target.url, body: event.body)
        request.headers = headers(event, attempt: attempt)
        if let secret = target.secret { request.headers.append(HTTPField("authorization", "Bearer " + secret)) }
        request.timeoutMilliseconds = target.timeoutMilliseconds
        request.connectTimeoutMilliseconds = min(connectMillisecondsMax, target.timeoutMilliseconds)
        request.proxy = .none
        request.isHTTP1Only = true
        request.opensConnection = target.opensConnections
        return request
    }
}

/// One request and its answer.
///
/// `@unchecked Sendable`: all but `running` belongs to the sender's thread.
private final class Exchange: @unchecked Sendable {
    private struct Running {
        var task: HTTPTask?
        /// Whether the task ends as soon as it is known: the answer may come before `started`.
        var isCancelled = false
    }

    private let keptBytesMax: Int
    /// Of any answer, and the body of a success, too.
    private let keepsAll: Bool
    private let clock: any Clock
    private let done: @Sendable (Delivery.Answer, EventSender.Response) -> Void
    private let running = Mutex(Running())
    private var response = EventSender.Response()
    private var retryAfterNanoseconds: UInt64?
    private var isUnconnected = false
    private var isOver = false

    /// - Parameter keptBytesMax: of the answer's body.
    init(
        keptBytesMax: Int = AnswerQuote.bytesMax, keepsAll: Bool = false, clock: any Clock,
        _ done: @escaping @Sendable (Delivery.Answer, EventSender.Response) -> Void
    ) {
        self.clock = clock
        self.keptBytesMax = keptBytesMax
        self.keepsAll = keepsAll
        self.done = done
    }

    func started(_ task: HTTPTask) {
        let isCancelled = running.withLock { running in
            running.task = task
            return running.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// Nothing was sent.
    func fail(_ status: Status) {
        end(.unreachable(DeliveryFailure(.unreachable, status.message)), cancels: false)
    }

    func take(_ event: HTTPEvent) {
        if isOver { return }
        switch event {
        case .head(let status, let headers):
            if Set(headers.filter { $0.name == "content-length" }.map(\.value)).count > 1 {
                return end(
                    .failed(DeliveryFailure(.cut, "The endpoint's answer has two lengths.")), cancels: true)
            }
            response.status = status
            if keepsAll { response.headers = headers }
            if status == 429 || status == 503 {
                retryAfterNanoseconds = headers.firstValue("retry-after").flatMap {
                    RetryAfter.nanoseconds($0, now: clock.now().microseconds / 1_000_000)
                }
            }
        case .body(let bytes):
            response.bodyBytes += bytes.count
            // Of a success nobody wants to know more.
            if keepsAll || !isSuccess { response.body += bytes.prefix(keptBytesMax - response.body.count) }
            // The rest is of no interest.
            if response.bodyBytes >= EventSender.bodyBytesMax { end(answer, cancels: true) }
        case .unconnected: isUnconnected = true
        case .closed(let status, _):
            // libcurl takes the end within a head for that of the answer.
            end(status.code == .ok && response.status > 0 ? answer : failure(status), cancels: false)
        }
    }

    private var isSuccess: Bool { (200..<300).contains(response.status) }

    private var answer: Delivery.Answer {
        let status = response.status
        // An answer that ends before its head, in a form that libcurl takes.
        if status == 0 { return .failed(DeliveryFailure(.cut, "The endpoint's answer has no status.")) }
        if isSuccess { return .acknowledged }
        return .failed(
            DeliveryFailure(
                .status(status), "The endpoint answered \(status).", quote: AnswerQuote.string(response.body)),
            retryAfterNanoseconds: retryAfterNanoseconds)
    }

    private func failure(_ status: Status) -> Delivery.Answer {
        if status.code == .ok {
            return .failed(DeliveryFailure(.cut, "The endpoint's answer ended within its head."))
        }
        if isUnconnected { return .unreachable(DeliveryFailure(.unreachable, status.message)) }
        return .failed(DeliveryFailure(status.code == .deadlineExceeded ? .timeout : .cut, status.message))
    }

    private func end(_ answer: Delivery.Answer, cancels: Bool) {
        isOver = true
        let task = running.withLock { running in
            defer { running = Running(isCancelled: cancels) }
            return running.task
        }
        if cancels { task?.cancel() }
        done(answer, response)
    }
}

/// What an endpoint says with a failure, as administrators see it.
enum AnswerQuote {
    /// Of UTF-8, before and after escaping.
    static let bytesMax = 500

    /// The beginning of a body on one line: what is no UTF-8 is replaced, and characters that a terminal obeys or that reorder
    /// a line are escaped as in Swift. White space at the ends of a whole answer is left out.
    static func string(_ body: [UInt8]) -> String {
        let isCut = body.count >= bytesMax
        var scalars = Array(String(decoding: whole(body.prefix(bytesMax)), as: UTF8.self).unicodeScalars)[...]
        while let first = scalars.first, first.properties.isWhitespace { scalars.removeFirst() }
        while !isCut, let last = scalars.last, last.properties.isWhitespace { scalars.removeLast() }
        var result = ""
        for scalar in scalars {
            let shown = shown(scalar)
            if result.utf8.count + shown.utf8.count > bytesMax { break }
            result += shown
        }
        return result
    }

    /// Without a character at the end of which only the beginning was kept.
    private static func whole(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard bytes.count == bytesMax, let start = bytes.suffix(4).lastIndex(where: { $0 & 0xC0 != 0x80 }) else {
            return bytes
        }
        let sizeBytes =
            switch bytes[start] {
            case 0xC0..<0xE0: 2
            case 0xE0..<0xF0: 3
            case 0xF0...: 4
            default: 1
            }
        return bytes.endIndex - start < sizeBytes ? bytes[..<start] : bytes
    }

    private static func shown(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default: break
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator:
            return "\\u{\(String(scalar.value, radix: 16))}"
        default: return String(scalar)
        }
    }
}

/// The value of a `retry-after` header.
enum RetryAfter {
    /// - Parameters:
    ///   - now: seconds since 1970, for a date.
    /// - Returns: nil for what is neither a number of seconds nor a date.
    static func nanoseconds(_ value: String, now: Int64) -> UInt64? {
        if value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let seconds = UInt32(value)
        {
            return UInt64(seconds) * 1_000_000_000
        }
        guard let time = HTTPDate.seconds(value) else { return nil }
        return UInt64(max(0, min(time - now, Int64(UInt32.max)))) * 1_000_000_000
    }
}
