import CCurl
import HearthModel
import Synchronization

/// A running request. All methods may be called from any thread.
///
/// It is sent once. When a kept connection ends without an answer, libcurl sends the request again over another one, up to five
/// times, also a POST that the server may have processed; the task fails instead (`transferIsReady`).
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
    /// How often a connection was ready for the request: once, and once more for each redirection that is followed.
    private var sendings = 0
    private var isConnected: Bool { sendings > 0 }
    /// Whether libcurl wanted to send the request again.
    private var wasCut = false
    /// A connection that was idle for longer is not used again: many servers close theirs after two to five seconds, and a request
    /// that is sent at that moment is lost.
    private static let idleSecondsMax = 1
    /// As messages show it.
    private var url = ""

    package init(transport: Transport, onEvent: @escaping (HTTPEvent) -> Void) {
        self.transport = transport
        self.onEvent = onEvent
    }

    /// Ends the request immediately. No event follows.
    package func cancel() {
        isSilenced.store(true, ordering: .sequentiallyConsistent)
        transport.loop.execute { self.end() }
    }

    // MARK: On the loop's thread

    package func start(_ request: HTTPRequest) {
        guard !isSilenced.load(ordering: .sequentiallyConsistent) else { return }
        let loop = transport.loop
        loop.add(self)
        url = request.shownURL
        if let milliseconds = request.timeoutMilliseconds {
            timer = loop.schedule(afterMilliseconds: milliseconds) { [unowned self] in
                timer = nil
                timedOut()
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
        transfer.set(CURLOPT_MAXAGE_CONN, Self.idleSecondsMax)
        if request.opensConnection { transfer.set(CURLOPT_FRESH_CONNECT, 1) }
        transfer.set(
            CURLOPT_HTTP_VERSION, Int(request.isHTTP1Only ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS))
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

    private func timedOut() {
        if !isConnected { onEvent?(.unconnected) }
        finish(Status(.deadlineExceeded, "\(url) did not answer in time"))
    }

    package func abort(_ status: Status) { finish(status) }

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

    package func transferIsReady(_ transfer: Transfer) -> Bool {
        guard sendings <= transfer.redirectsFollowed else {
            wasCut = true
            return false
        }
        sendings += 1
        return true
    }

    package func transfer(_ transfer: Transfer, receivedLine line: UnsafeRawBufferPointer) {
        guard reader.read(line) else {
            if reader.failure != nil { transfer.mark() }
            return
        }
        // The heads of followed redirections are ignored.
        let isRedirection =
            followsRedirects && (300..<400).contains(reader.status)
            && reader.head.firstValue("location") != nil
        if !isRedirection { pending.append(.head(status: reader.status, headers: reader.head)) }
        transfer.mark()
    }

    package func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) {
        pending.append(.body(Array(bytes)))
        transfer.mark()
    }

    package func transferProcesses(_ transfer: Transfer) {
        let events = pending
        pending = []
        for event in events where !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(event) }
        if let failure = reader.failure { finish(failure) }
    }

    package func transferCompleted(_ transfer: Transfer, _ code: CURLcode) {
        transferProcesses(transfer)
        transfer.isDone = true
        guard code != CURLE_OK else { return finish(.ok) }
        if wasCut { return finish(.unavailable("\(url): the server closed the connection without an answer")) }
        let isUnconnected =
            [CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT].contains(code)
            || code == CURLE_OPERATION_TIMEDOUT && !isConnected
        if isUnconnected { onEvent?(.unconnected) }
        finish(CurlFailure.status(code, transfer.errorMessage(code), peer: url))
    }
}
