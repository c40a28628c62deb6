import CCurl
import Glibc
import HearthModel

/// One easy handle: a running request in libcurl. Used on the loop's thread.
///
/// It owns the data that libcurl only borrows: the header list, the body, the error buffer.
package final class Transfer {
    package enum Output {
        case bytes(Int)
        case end
        /// No bytes now: call `resumeSending` when there are some.
        case wait
    }

    package let handle: UnsafeMutableRawPointer
    package let pool: ConnectionPool
    package unowned let loop: TransportLoop
    /// Released by `detach`.
    private var delegate: (any TransferDelegate)?
    var isMarked = false
    /// libcurl has completed the transfer.
    var isDone = false

    private let errorMessage: UnsafeMutablePointer<CChar>
    private var headers: UnsafeMutablePointer<curl_slist>?
    private var body: UnsafeMutableRawBufferPointer?
    private var isSendingPaused = false
    private var isReceivingPaused = false
    /// The HTTP/2 error code, as far as libcurl has reported it.
    fileprivate var streamNumber: Int?

    package init(loop: TransportLoop, pool: ConnectionPool, delegate: any TransferDelegate) throws(Status) {
        // A handle serves one transfer: in libcurl 7.88 one that is used again keeps a pointer to the last header of the
        // response before, which is freed; a response that begins with a folded header line has libcurl write there.
        guard let handle = curl_easy_init() else { throw .resourceExhausted("libcurl has no memory") }
        TransportCounters.handles.add(1, ordering: .relaxed)
        self.handle = handle
        self.loop = loop
        self.pool = pool
        self.delegate = delegate
        errorMessage = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorMessage.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        setUp()
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(headers)
        body?.deallocate()
        errorMessage.deallocate()
        TransportCounters.handles.subtract(1, ordering: .relaxed)
    }

    private func setUp() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        curl_set_pointer(handle, CURLOPT_ERRORBUFFER, errorMessage)
        curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        // Otherwise cancelling a name lookup waits for the resolver.
        curl_set_long(handle, CURLOPT_QUICK_EXIT, 1)
        curl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https")
        curl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        curl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1)
        curl_set_long(handle, CURLOPT_TCP_KEEPIDLE, TransportLimits.keepAliveIdleSeconds)
        curl_set_long(handle, CURLOPT_TCP_KEEPINTVL, TransportLimits.keepAliveIntervalSeconds)
        curl_set_callbacks(
            handle, takeHeaderLine, takeBody, fillBody,
            // Sent bytes are not stored: libcurl must not begin again automatically.
            { _, _, _ in CURL_SEEKFUNC_FAIL }, connectionIsReady, context)
        curl_set_socket_callbacks(
            handle, openTransferSocket, context, closePooledSocket, Unmanaged.passUnretained(pool).toOpaque(),
            // libcurl calls the socket callback also for connections that it made itself: they need no further options.
            { _, _, _ in CURL_SOCKOPT_OK })
        curl_set_pointer(handle, CURLOPT_SHARE, pool.share)
    }

    // MARK: Before the start

    package func set(_ option: CURLoption, _ value: Int) { curl_set_long(handle, option, value) }
    package func set(_ option: CURLoption, _ value: String) { curl_set_string(handle, option, value) }

    /// - Parameter lines: `name: value`, or `name;` for an empty value, or `name:` to omit libcurl's own field.
    package func setHeaders(_ lines: [String]) throws(Status) {
        for line in lines {
            guard let list = curl_slist_append(headers, line) else { throw .resourceExhausted("libcurl has no memory") }
            headers = list
        }
        curl_set_pointer(handle, CURLOPT_HTTPHEADER, headers)
    }

    /// A body that is known as a whole. libcurl can send it again, which is impossible for a streamed one.
    package func setBody(_ parts: [UInt8]...) {
        let count = parts.reduce(0) { $0 + $1.count }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, count), alignment: 1)
        var position = 0
        for part in parts {
            UnsafeMutableRawBufferPointer(rebasing: memory[position...]).copyBytes(from: part)
            position += part.count
        }
        body?.deallocate()
        body = memory
        curl_set_body(handle, memory.baseAddress, curl_off_t(count))
    }

    /// Enables libcurl's debug messages, the only report that the server rejected a stream.
    package func watchForRefusal() {
        curl_set_debug(handle, takeDebugMessage, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Adds the request to libcurl.
    package func start() throws(Status) {
        guard loop.add(self) else { throw .resourceExhausted("libcurl accepts no more requests") }
    }

    // MARK: Running. None of these is called within libcurl.

    /// Ends the transfer if it is running: resets its stream immediately. No delegate method is called afterwards.
    package func detach() {
        delegate = nil
        loop.remove(self)
        // An easy handle that exists keeps its pool in use.
        curl_set_pointer(handle, CURLOPT_SHARE, nil)
    }

    /// Closes the connection when this transfer is detached and no other uses it. libcurl 7.88 queues the RST_STREAM of
    /// a cancelled request, but sends it only with the next activity on the connection: on an idle connection the
    /// server would never receive it.
    package func forbidReuse() { set(CURLOPT_FORBID_REUSE, 1) }

    func forbidReuseUnlessDone() { if !isDone { forbidReuse() } }

    /// Flushes the frames that libcurl has queued on the connection; see `forbidReuse`. A pause ends with the update of
    /// the window.
    package func nudge() {
        guard !isReceivingPaused, delegate != nil else { return }
        curl_easy_pause(handle, CURLPAUSE_RECV | (isSendingPaused ? CURLPAUSE_SEND : 0))
        applyPauses()
    }

    package func mark() { loop.mark(self) }

    /// There are bytes to send again.
    package func resumeSending() {
        guard isSendingPaused, delegate != nil else { return }
        isSendingPaused = false
        applyPauses()
    }

    /// Stops reading from the connection, which must not be shared.
    package func pauseReceiving() {
        guard !isReceivingPaused, delegate != nil else { return }
        isReceivingPaused = true
        applyPauses()
    }

    package func resumeReceiving() {
        guard isReceivingPaused, delegate != nil else { return }
        isReceivingPaused = false
        applyPauses()
    }

    private func applyPauses() {
        let mask = (isReceivingPaused ? CURLPAUSE_RECV : 0) | (isSendingPaused ? CURLPAUSE_SEND : 0)
        curl_easy_pause(handle, mask)
    }

    /// Bytes of the request that were passed to the connection. 0: the server cannot have received it.
    package var requestBytesSent: Int {
        var count = 0
        curl_get_long(handle, CURLINFO_REQUEST_SIZE, &count)
        return count
    }

    /// Bytes of the request's body that were passed to the connection.
    package var bodyBytesSent: Int {
        var count = 0
        curl_get_long(handle, CURLINFO_SIZE_UPLOAD_T, &count)
        return count
    }

    /// Redirections that libcurl has followed.
    package var redirectsFollowed: Int {
        var count = 0
        curl_get_long(handle, CURLINFO_REDIRECT_COUNT, &count)
        return count
    }

    /// The socket of a `CONNECT_ONLY` transfer.
    package var activeSocket: Int32? {
        var descriptor: curl_socket_t = -1
        return curl_get_socket(handle, &descriptor) == CURLE_OK && descriptor >= 0 ? descriptor : nil
    }

    /// libcurl's message about a failure.
    package func errorMessage(_ code: CURLcode) -> String {
        let string = String(cString: errorMessage)
        return string.isEmpty ? String(cString: curl_easy_strerror(code)) : string
    }

    // MARK: Called by the loop

    func completed(_ code: CURLcode) { delegate?.transferCompleted(self, code) }
    package func process() { delegate?.transferProcesses(self) }

    // MARK: Called by libcurl

    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> Transfer {
        guard let context else { preconditionFailure("a callback without its transfer") }
        return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }

    fileprivate func mayConnect() -> Bool { delegate?.transferMayConnect(self) ?? false }
    fileprivate func isReady() -> Bool { delegate?.transferIsReady(self) ?? false }
    fileprivate func receivedLine(_ line: UnsafeRawBufferPointer) { delegate?.transfer(self, receivedLine: line) }
    fileprivate func wasRefused() { delegate?.transferWasRefused(self) }

    fileprivate func received(_ bytes: UnsafeRawBufferPointer) { delegate?.transfer(self, received: bytes) }

    fileprivate func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch delegate?.transfer(self, fill: buffer) ?? .end {
        case .bytes(let count): return count
        case .end: return 0
        case .wait:
            isSendingPaused = true
            return Int(CURL_READFUNC_PAUSE)
        }
    }
}

private func takeHeaderLine(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    Transfer.from(context).receivedLine(UnsafeRawBufferPointer(start: bytes, count: size * count))
    return size * count
}

private func takeBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    Transfer.from(context).received(UnsafeRawBufferPointer(start: bytes, count: size * count))
    return size * count
}

private func fillBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    Transfer.from(context).fill(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}

private func connectionIsReady(
    _ context: UnsafeMutableRawPointer?, _ remote: UnsafeMutablePointer<CChar>?,
    _ local: UnsafeMutablePointer<CChar>?, _ remotePort: Int32, _ localPort: Int32
) -> Int32 {
    Transfer.from(context).isReady() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}

private func openTransferSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    let transfer = Transfer.from(context)
    guard let address, transfer.mayConnect() else { return -1 }
    return transfer.pool.openSocket(address)
}

/// libcurl 7.88 reports a rejected stream only in debug messages. One message contains REFUSED_STREAM. When a GOAWAY
/// excludes the last stream of a connection, the message only contains the last stream that the server processed.
private func takeDebugMessage(
    _ handle: UnsafeMutableRawPointer?, _ kind: curl_infotype, _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard kind == CURLINFO_TEXT, let bytes else { return 0 }
    Transfer.from(context).note(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

extension Transfer {
    fileprivate func note(_ string: UnsafeRawBufferPointer) {
        if string.starts(with: "REFUSED_STREAM".utf8) { return wasRefused() }
        let beginning = "Using Stream ID: "
        if string.starts(with: beginning.utf8) {
            streamNumber = Transfer.number(string.dropFirst(beginning.utf8.count))
        } else if let streamNumber {
            let string = String(decoding: string, as: UTF8.self)
            guard string.contains("GOAWAY"), let start = string.index(after: "last_stream="),
                let last = Transfer.number(string.utf8[start...])
            else { return }
            if last < streamNumber { wasRefused() }
        }
    }

    private static func number(_ string: some Sequence<UInt8>) -> Int? {
        Int(String(decoding: string.prefix { (48...57).contains($0) }, as: UTF8.self))
    }
}
