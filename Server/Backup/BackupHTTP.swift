import HearthConcurrency
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// A backup as an archive, for administrators of all projects: `GET /hearth/v1/backup`.
package struct BackupHTTP: HTTPExtension {
    /// Calls back on the exchange's loop, with an error unless its sender is an owner.
    package typealias Permit =
        @Sendable (_ exchange: HTTPExchange, _ done: @escaping @Sendable (Result<Void, Status>) -> Void) -> Void

    private let service: BackupService
    private let streams: OpenStreams
    private let observer: RequestObserver
    private let log: Log
    private let permit: Permit

    private static let path = "/hearth/v1/backup"

    package init(
        service: BackupService, streams: OpenStreams, observer: RequestObserver, log: Log, permit: @escaping Permit
    ) {
        self.service = service
        self.streams = streams
        self.observer = observer
        self.log = log
        self.permit = permit
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        guard head.path == Self.path else { return false }
        guard head.method == "GET" else {
            exchange.respond(
                status: 405, headers: [HTTPHeader("allow", "GET, OPTIONS")] + CORS.headers(for: head), body: [])
            return true
        }
        let call = RESTCall(
            exchange, isStreaming: false, options: JSONOptions(),
            observation: observer.begin(.admin, .rest, remote: head.remoteAddress))
        permit(exchange) { result in
            do throws(Status) {
                try result.get()
                if let first = URLCoding.parameters(head.query)?.first {
                    throw .invalidArgument("There is no parameter \"\(first.name)\".")
                }
            } catch {
                return call.finish(error)
            }
            if call.isFinished { return }
            start(exchange, call)
        }
        return true
    }

    private func start(_ exchange: HTTPExchange, _ call: RESTCall) {
        let sender = BackupSender(exchange)
        exchange.onCancel = {
            call.end(Status(.cancelled, "The client has disconnected.")); sender.cancel()
        }
        exchange.onWritable = { sender.becameWritable() }
        streams.add(sender) { status in sender.cancel(status) }
        let seconds = Int(Log.wallClock().seconds)
        service.start(sender.cancellation) {
            sender.start()
            return TarTarget(seconds: seconds) { bytes throws(Status) in try sender.send(bytes) }
        } _: { result in
            streams.remove(sender)
            if case .failure(let status) = result { report(sender.reason ?? status) }
            call.onLoop {
                switch result {
                case .success:
                    call.end(.ok)
                    exchange.end()
                case .failure(let status):
                    let reason = sender.reason ?? status
                    if !sender.hasStarted { return call.finish(reason) }
                    call.end(reason)
                    // The head was sent already; only a response that is cut shows the client that it failed.
                    exchange.abort()
                }
            }
        }
    }

    private func report(_ status: Status) {
        if status.code == .cancelled || status.code == .failedPrecondition { return }
        log.warning("a backup was not completed", ("reason", .string(status.message)))
    }
}

/// Hands the parts of an archive from the backup's thread to the loop of its exchange, as fast as the client takes them: two parts
/// wait at most.
///
/// `@unchecked Sendable`: the monitor guards what is below it; the exchange is used on its loop.
private final class BackupSender: @unchecked Sendable {
    let cancellation = Cancellation()
    private let exchange: HTTPExchange
    private let monitor = Monitor()
    /// Parts that the loop hasn't taken yet.
    private var waiting = 0
    private var isFull = false
    private var end: Status?
    private var isStarted = false

    private static let waitingMax = 2

    init(_ exchange: HTTPExchange) { self.exchange = exchange }

    /// Why the answer ends; nil unless the client or the server has ended it.
    var reason: Status? { monitor.withLock { end } }
    var hasStarted: Bool { monitor.withLock { isStarted } }

    func cancel(_ status: Status = Status(.cancelled, "The client has disconnected.")) {
        monitor.withLock {
            end = end ?? status
            monitor.signal()
        }
        cancellation.cancel()
    }

    func becameWritable() {
        monitor.withLock {
            isFull = false
            monitor.signal()
        }
    }

    // MARK: On the backup's thread

    func start() {
        monitor.withLock { isStarted = true }
        exchange.loop.execute { [exchange] in
            exchange.start(
                status: 200,
                headers: [HTTPHeader("content-type", "application/x-tar"), HTTPHeader("cache-control", "no-store")]
                    + CORS.headers(for: exchange.head))
        }
    }

    /// Waits until the connection takes more.
    /// - Throws: why the answer ended; DEADLINE_EXCEEDED when the client took nothing for long.
    func send(_ bytes: [UInt8]) throws(Status) {
        let deadline = MonotonicTime.now.advanced(milliseconds: Limits.backupIdleSecondsMax * 1000)
        let end = monitor.withLock { () -> Status? in
            while self.end == nil, isFull || waiting >= Self.waitingMax {
                if MonotonicTime.now >= deadline {
                    self.end = Status(
                        .deadlineExceeded,
                        "The client of a backup took nothing for \(Limits.backupIdleSecondsMax) seconds.")
                } else {
                    monitor.wait(until: deadline)
                }
            }
            if self.end == nil { waiting += 1 }
            return self.end
        }
        if let end { throw end }
        exchange.loop.execute { [self] in
            let hasCapacity = exchange.write(bytes)
            monitor.withLock {
                waiting -= 1
                if !hasCapacity { isFull = true }
                monitor.signal()
            }
        }
    }
}
