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

        package init(url: String, secret: String? = nil, timeoutMilliseconds: Int = 60_000) {
            self.url = url
            self.secret = secret
            self.timeoutMilliseconds = timeoutMilliseconds
        }
    }

    /// Of an answer, which nobody reads.
    private static let bodyBytesMax = 64 << 10
    private static let connectMillisecondsMax = 10_000

    private struct Connection: Sendable {
        let transport: Transport
        let client: HTTPClient
    }

    /// Made by the first event: most servers have no triggers.
    private let connection = Mutex<Connection?>(nil)
    private let clock: any Clock

    package init(clock: any Clock = SystemClock()) { self.clock = clock }

    private func connect() throws(Status) -> Connection {
        try connection.withLock { connection throws(Status) -> Connection in
            if let connection { return connection }
            let transport = try Transport(name: "hearth-events", idleConnectionsMax: 512)
            transport.loop.execute { NamedThread.giveWay() }
            let new = Connection(transport: transport, client: HTTPClient(transport: transport))
            connection = new
            return new
        }
    }

    /// Ends all requests without answers.
    package func close() { connection.withLock { $0 }?.transport.shutDown() }

    /// - Parameter done: called once, on the sender's thread; it must not block.
    package func send(
        _ event: EventRequest, to target: Target, attempt: Int,
        _ done: @escaping @Sendable (Delivery.Answer) -> Void
    ) {
        var request = HTTPRequest(method: "POST", url: target.url, body: event.body)
        request.headers = event.headers.map { HTTPField($0.name, $0.value) }
        request.headers.append(HTTPField("x-hearth-attempt", String(attempt)))
        request.headers.append(HTTPField("user-agent", "hearth"))
        if let secret = target.secret { request.headers.append(HTTPField("authorization", "Bearer " + secret)) }
        request.timeoutMilliseconds = target.timeoutMilliseconds
        request.connectTimeoutMilliseconds = min(Self.connectMillisecondsMax, target.timeoutMilliseconds)
        request.proxy = .none
        request.isHTTP1Only = true
        let connection: Connection
        do throws(Status) {
            connection = try connect()
        } catch {
            return done(.unreachable(DeliveryFailure(.unreachable, error.message)))
        }
        let exchange = Exchange(bodyBytesMax: Self.bodyBytesMax, clock: clock, done)
        exchange.started(connection.client.start(request) { exchange.take($0) })
    }
}

/// One request and its answer.
///
/// `@unchecked Sendable`: all but `task` belongs to the sender's thread.
private final class Exchange: @unchecked Sendable {
    private let bodyBytesMax: Int
    private let clock: any Clock
    private let done: @Sendable (Delivery.Answer) -> Void
    private let task = Mutex<HTTPTask?>(nil)
    private var status = 0
    private var retryAfterNanoseconds: UInt64?
    private var bodyBytes = 0
    private var isUnconnected = false
    private var isOver = false

    init(bodyBytesMax: Int, clock: any Clock, _ done: @escaping @Sendable (Delivery.Answer) -> Void) {
        self.clock = clock
        self.bodyBytesMax = bodyBytesMax
        self.done = done
    }

    func started(_ new: HTTPTask) { task.withLock { $0 = new } }

    func take(_ event: HTTPEvent) {
        if isOver { return }
        switch event {
        case .head(let status, let headers):
            if Set(headers.filter { $0.name == "content-length" }.map(\.value)).count > 1 {
                return end(
                    .failed(DeliveryFailure(.cut, "The endpoint's answer has two lengths.")), cancels: true)
            }
            self.status = status
            if status == 429 || status == 503 {
                retryAfterNanoseconds = headers.firstValue("retry-after").flatMap {
                    RetryAfter.nanoseconds($0, now: clock.now().microseconds / 1_000_000)
                }
            }
        case .body(let bytes):
            bodyBytes += bytes.count
            // The rest is of no interest.
            if bodyBytes >= bodyBytesMax { end(answer, cancels: true) }
        case .unconnected: isUnconnected = true
        case .closed(let status, _):
            // libcurl takes the end within a head for that of the answer.
            end(status.code == .ok && self.status > 0 ? answer : failure(status), cancels: false)
        }
    }

    private var answer: Delivery.Answer {
        if (200..<300).contains(status) { return .acknowledged }
        return .failed(
            DeliveryFailure(.status(status), "The endpoint answered \(status)."),
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
        let task = task.withLock { task in
            defer { task = nil }
            return task
        }
        if cancels { task?.cancel() }
        done(answer)
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
