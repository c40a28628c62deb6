import CCurl
import Glibc
import HearthModel

/// A connection without a protocol: TCP or TLS, through the same proxies as requests, made by libcurl and then used by
/// us. On the loop's thread; callbacks come on it, never within libcurl and never within `send`, `close` or `start`.
final class RawSocket: TransferDelegate {
    enum ApplicationProtocol { case http2, http1 }

    var onOpen: (() -> Void)?
    /// Bytes that came; valid during the call.
    var onBytes: ((UnsafeRawBufferPointer) -> Void)?
    /// All that was queued has been sent.
    var onDrained: (() -> Void)?
    /// The end: nil when the peer closed it. Not after `close`.
    var onEnd: ((Status?) -> Void)?

    private let loop: TransportLoop
    private let address: ServerAddress
    private let applicationProtocol: ApplicationProtocol
    private var transfer: Transfer?
    private var pool: ConnectionPool?
    private var watch: DescriptorWatch?
    private var output: [UInt8] = []
    /// Bytes of `output` that have been staged.
    private var taken = 0
    /// What is being sent. OpenSSL wants a write that didn't go through repeated with the same memory and length.
    private let stage = UnsafeMutableRawBufferPointer.allocate(byteCount: RawSocket.chunkBytes, alignment: 1)
    private var stagedCount = 0
    private var stagedSent = 0
    private var isReading = true
    private var isFlushScheduled = false
    private var isOver = false

    private static let chunkBytes = 64 << 10
    /// Reads of one turn, so that one connection doesn't keep the thread for itself.
    private static let readsPerTurn = 16

    init(loop: TransportLoop, address: ServerAddress, applicationProtocol: ApplicationProtocol) {
        self.loop = loop
        self.address = address
        self.applicationProtocol = applicationProtocol
    }

    deinit { stage.deallocate() }

    func start() throws(Status) {
        let pool = try loop.makePool()
        self.pool = pool
        let transfer = try Transfer(loop: loop, pool: pool, delegate: self)
        self.transfer = transfer
        transfer.set(CURLOPT_CONNECT_ONLY, 1)
        transfer.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        // What TLS offers to the server.
        let version = applicationProtocol == .http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
        transfer.set(CURLOPT_HTTP_VERSION, Int(version))
        transfer.setConnection(
            address.security, address.proxy, connectTimeoutMilliseconds: address.connectTimeoutMilliseconds)
        setURL(transfer)
        try transfer.start()
    }

    /// Asked for an `https` connection whose TLS agrees on `h2`, libcurl 7.88 begins HTTP/2 itself. Of a scheme that knows
    /// no HTTP it makes a TLS connection and leaves it alone, but offers no protocol by ALPN: Hearth takes that, servers
    /// that insist on ALPN `h2` don't. Only the environment's proxy has to be looked up here; `no_proxy` is libcurl's.
    private func setURL(_ transfer: Transfer) {
        guard address.isSecure, applicationProtocol == .http2 else { return transfer.set(CURLOPT_URL, address.url) }
        transfer.set(CURLOPT_PROTOCOLS_STR, "gophers")
        transfer.set(CURLOPT_URL, "gophers://" + address.text)
        guard address.proxy == .environment else { return }
        for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            guard let proxy = getenv(name), proxy.pointee != 0 else { continue }
            return transfer.set(CURLOPT_PROXY, String(cString: proxy))
        }
    }

    var queuedBytes: Int { output.count - taken + stagedCount - stagedSent }

    /// Queues bytes; they leave before the loop waits again.
    func send(_ bytes: UnsafeRawBufferPointer) {
        guard !isOver else { return }
        output.append(contentsOf: bytes)
        guard watch != nil, !isFlushScheduled else { return }
        isFlushScheduled = true
        _ = loop.schedule(afterMilliseconds: 0) { [weak self] in
            self?.isFlushScheduled = false
            self?.flush()
        }
    }

    /// Without reading, the peer is held back by TCP once the buffers are full.
    func setReading(_ isReading: Bool) {
        guard self.isReading != isReading else { return }
        self.isReading = isReading
        updateEvents()
        // TLS may hold bytes that the descriptor doesn't show any more.
        if isReading, watch != nil { _ = loop.schedule(afterMilliseconds: 0) { [weak self] in self?.read() } }
    }

    /// What is queued is sent as far as the system takes it at once.
    func close() {
        guard !isOver else { return }
        writeQueued()
        release()
    }

    private func release() {
        isOver = true
        onOpen = nil
        onBytes = nil
        onDrained = nil
        onEnd = nil
        if let watch { loop.unwatch(watch) }
        watch = nil
        transfer?.detach()
        transfer = nil
        if let pool { loop.close(pool) }
        pool = nil
    }

    private func end(_ status: Status?) {
        guard !isOver else { return }
        let onEnd = onEnd
        release()
        onEnd?(status)
    }

    // MARK: Bytes

    private func updateEvents() { watch?.events = Int16((isReading ? POLLIN : 0) | (queuedBytes > 0 ? POLLOUT : 0)) }

    private func isReady(_ events: Int16) {
        if Int32(events) & POLLOUT != 0 { flush() }
        if Int32(events) & (POLLIN | POLLHUP | POLLERR) != 0 { read() }
    }

    private func read() {
        var chunk = [UInt8](repeating: 0, count: RawSocket.chunkBytes)
        for _ in 0..<RawSocket.readsPerTurn {
            guard isReading, !isOver, let transfer else { return }
            var count = 0
            let code = chunk.withUnsafeMutableBytes {
                curl_easy_recv(transfer.handle, $0.baseAddress, $0.count, &count)
            }
            if code == CURLE_AGAIN { return }
            guard code == CURLE_OK else { return end(failure(transfer, code)) }
            if count == 0 { return end(nil) }
            chunk.withUnsafeBytes { onBytes?(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        }
        _ = loop.schedule(afterMilliseconds: 0) { [weak self] in self?.read() }
    }

    private func flush() {
        guard !isOver, watch != nil else { return }
        if let failure = writeQueued() { return end(failure) }
        updateEvents()
        if queuedBytes == 0 { onDrained?() }
    }

    @discardableResult
    private func writeQueued() -> Status? {
        guard watch != nil, let transfer else { return nil }
        while queuedBytes > 0 {
            if stagedSent == stagedCount { fillStage() }
            var count = 0
            let code = curl_easy_send(
                transfer.handle, stage.baseAddress.map { $0 + stagedSent }, stagedCount - stagedSent, &count)
            if code == CURLE_AGAIN { break }
            guard code == CURLE_OK else { return failure(transfer, code) }
            stagedSent += count
        }
        return nil
    }

    private func fillStage() {
        stagedCount = min(stage.count, output.count - taken)
        stagedSent = 0
        stage.copyBytes(from: output[taken..<(taken + stagedCount)])
        taken += stagedCount
        if taken == output.count {
            output.removeAll(keepingCapacity: output.count < 1 << 20)
            taken = 0
        } else if taken > 1 << 20 {
            output.removeSubrange(..<taken)
            taken = 0
        }
    }

    private func failure(_ transfer: Transfer, _ code: CURLcode) -> Status {
        CurlFailure.status(code, transfer.errorMessage(code), peer: address.text)
    }

    // MARK: TransferDelegate

    func transferCompleted(_ transfer: Transfer, _ code: CURLcode) {
        guard code == CURLE_OK else { return end(failure(transfer, code)) }
        guard let descriptor = transfer.activeSocket else {
            return end(.unavailable("\(address.text): the connection was lost as soon as it was made"))
        }
        var noDelay: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &noDelay, 4)
        let watch = DescriptorWatch(descriptor: descriptor, events: Int16(POLLIN)) { [unowned self] in isReady($0) }
        self.watch = watch
        loop.watch(watch)
        updateEvents()
        onOpen?()
    }

    func transfer(_ transfer: Transfer, receivedLine line: UnsafeRawBufferPointer) {}
    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) {}
    func transferProcesses(_ transfer: Transfer) {}
}
