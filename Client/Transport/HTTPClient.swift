import CCurl
import HearthModel
import HearthTLS
import Synchronization

/// A request that is not gRPC.
package struct HTTPRequest: Sendable {
    package var method: String
    /// `http` or `https`.
    package var url: String
    package var headers: [HTTPField]
    package var body: [UInt8]
    /// For the whole request; nil: never, for event streams.
    package var timeoutMilliseconds: Int?
    package var connectTimeoutMilliseconds = 20_000
    /// Used for `https`.
    package var tls = TLSOptions()
    package var proxy = ProxySetting.environment
    /// The number of redirections to follow. `authorization` is not sent to another host.
    package var redirectsMax = 0
    /// Whether to accept a compressed response.
    package var acceptsCompression = false

    package init(method: String = "GET", url: String, headers: [HTTPField] = [], body: [UInt8] = []) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }
}

package enum HTTPEvent: Sendable {
    case head(status: Int, headers: [HTTPField])
    case body([UInt8])
    /// The end: OK with the response's trailers when it is complete, for any HTTP status.
    case closed(Status, trailers: [HTTPField])
}

package struct HTTPResponse: Sendable {
    package var status: Int
    package var headers: [HTTPField]
    package var body: [UInt8]
}

/// Plain requests over HTTP/1.1 or HTTP/2. Connections are shared among all clients of a transport.
package final class HTTPClient: Sendable {
    private let transport: Transport

    package init(transport: Transport) { self.transport = transport }

    /// Begins a request. Events are delivered on the transport's thread and must not block it. After the shutdown of
    /// the transport only the end is delivered, within the call.
    package func start(_ request: HTTPRequest, onEvent: @escaping @Sendable (HTTPEvent) -> Void) -> HTTPTask {
        let task = HTTPTask(transport: transport, onEvent: onEvent)
        if !transport.loop.execute({ task.start(request) }) {
            onEvent(.closed(Status(.cancelled, "the transport was shut down"), trailers: []))
        }
        return task
    }

    /// Sends a request and collects its response.
    /// - Throws: RESOURCE_EXHAUSTED when the body is larger than `bodyBytesMax`, otherwise as for calls.
    package func response(to request: HTTPRequest, bodyBytesMax: Int) async throws(Status) -> HTTPResponse {
        let gathered = GatheredAnswer(bodyBytesMax: bodyBytesMax)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                gathered.begin(continuation)
                let started = start(request) { gathered.take($0) }
                gathered.set(started)
                if Task.isCancelled { gathered.cancel() }
            }
        } onCancel: {
            gathered.cancel()
        }
        return try result.get()
    }
}

/// A running request. All methods may be called from any thread.
///
/// `@unchecked Sendable`: everything except the atomic belongs to the loop's thread.
package final class HTTPTask: @unchecked Sendable, TransferDelegate, LoopActivity {
    private let transport: Transport
    private let isSilenced = Atomic<Bool>(false)
    private var onEvent: ((HTTPEvent) -> Void)?
    private var transfer: Transfer?
    private var timer: TransportTimer?
    private var reader = HTTPHeadReader()
    private var pending: [HTTPEvent] = []
    private var followsRedirects = false
    private var url = ""

    init(transport: Transport, onEvent: @escaping (HTTPEvent) -> Void) {
        self.transport = transport
        self.onEvent = onEvent
    }

    /// Ends the request immediately. No event follows.
    package func cancel() {
        isSilenced.store(true, ordering: .sequentiallyConsistent)
        transport.loop.execute { self.end() }
    }

    // MARK: On the loop's thread

    func start(_ request: HTTPRequest) {
        guard !isSilenced.load(ordering: .sequentiallyConsistent) else { return }
        let loop = transport.loop
        loop.add(self)
        url = request.url
        if let milliseconds = request.timeoutMilliseconds {
            timer = loop.schedule(afterMilliseconds: milliseconds) { [unowned self] in
                timer = nil
                abort(Status(.deadlineExceeded, "\(url) did not answer in time"))
            }
        }
        do throws(Status) {
            let transfer = try Transfer(loop: loop, pool: try loop.sharedPlainPool(), delegate: self)
            self.transfer = transfer
            try set(request, on: transfer)
            try transfer.start()
        } catch { abort(error) }
    }

    private func set(_ request: HTTPRequest, on transfer: Transfer) throws(Status) {
        var lines = ["expect:"]
        for field in request.headers { lines.append(try field.line()) }
        try transfer.setHeaders(lines)
        transfer.set(CURLOPT_URL, request.url)
        let isSecure = request.url.lowercased().hasPrefix("https:")
        transfer.setConnection(
            isSecure ? .tls(request.tls) : .plaintext, request.proxy,
            connectTimeoutMilliseconds: request.connectTimeoutMilliseconds)
        transfer.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        if request.method == "HEAD" { transfer.set(CURLOPT_NOBODY, 1) }
        if !request.body.isEmpty || request.method == "POST" { transfer.setBody(request.body) }
        if request.method != "HEAD" { transfer.set(CURLOPT_CUSTOMREQUEST, request.method) }
        if request.acceptsCompression { transfer.set(CURLOPT_ACCEPT_ENCODING, "gzip") }
        if request.redirectsMax > 0 {
            followsRedirects = true
            transfer.set(CURLOPT_FOLLOWLOCATION, 1)
            transfer.set(CURLOPT_MAXREDIRS, request.redirectsMax)
            transfer.set(CURLOPT_REDIR_PROTOCOLS_STR, isSecure ? "https" : "http,https")
        }
    }

    func abort(_ status: Status) { finish(status) }

    private func finish(_ status: Status) {
        let onEvent = onEvent
        let trailers = reader.trailers
        end()
        if !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(.closed(status, trailers: trailers)) }
    }

    private func end() {
        onEvent = nil
        pending = []
        if let timer { transport.loop.cancelTimer(timer) }
        timer = nil
        transfer?.forbidReuseUnlessDone()
        transfer?.detach()
        transfer = nil
        transport.loop.remove(self)
    }

    func transfer(_ transfer: Transfer, receivedLine line: UnsafeRawBufferPointer) {
        guard reader.read(line) else { return }
        // The heads of followed redirections are ignored.
        let isRedirection =
            followsRedirects && (300..<400).contains(reader.status)
            && reader.head.firstValue("location") != nil
        if !isRedirection { pending.append(.head(status: reader.status, headers: reader.head)) }
        transfer.mark()
    }

    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) {
        pending.append(.body(Array(bytes)))
        transfer.mark()
    }

    func transferProcesses(_ transfer: Transfer) {
        let events = pending
        pending = []
        for event in events where !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(event) }
        if let failure = reader.failure { finish(failure) }
    }

    func transferCompleted(_ transfer: Transfer, _ code: CURLcode) {
        transferProcesses(transfer)
        transfer.isDone = true
        guard code != CURLE_OK else { return finish(.ok) }
        finish(CurlFailure.status(code, transfer.errorMessage(code), peer: url))
    }
}

/// Collects a response for `HTTPClient.response`.
private final class GatheredAnswer: Sendable {
    private struct State {
        var response = HTTPResponse(status: 0, headers: [], body: [])
        var continuation: CheckedContinuation<Result<HTTPResponse, Status>, Never>?
        var task: HTTPTask?
        var isOver = false
    }

    private let state = Mutex(State())
    private let bodyBytesMax: Int

    init(bodyBytesMax: Int) { self.bodyBytesMax = bodyBytesMax }

    func begin(_ continuation: CheckedContinuation<Result<HTTPResponse, Status>, Never>) {
        state.withLock { $0.continuation = continuation }
    }

    func set(_ task: HTTPTask) {
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    func cancel() { end(.failure(Status(.cancelled, "the request was cancelled"))) }

    func take(_ event: HTTPEvent) {
        switch event {
        case .head(let status, let headers):
            state.withLock { state in
                state.response.status = status
                state.response.headers = headers
            }
        case .body(let bytes):
            let isTooLarge = state.withLock { state in
                state.response.body += bytes
                return state.response.body.count > bodyBytesMax
            }
            if isTooLarge { end(.failure(.resourceExhausted("the answer is larger than \(bodyBytesMax) bytes"))) }
        case .closed(let status, _):
            end(status.code == .ok ? .success(state.withLock { $0.response }) : .failure(status))
        }
    }

    private func end(_ result: Result<HTTPResponse, Status>) {
        let (continuation, task) = state.withLock { state in
            let ended = (state.continuation, state.task)
            state.continuation = nil
            state.task = nil
            state.isOver = true
            return ended
        }
        task?.cancel()
        continuation?.resume(returning: result)
    }
}
