import CCurl
import Glibc
import HearthHTTPClient
import HearthModel

/// A connection without a protocol, through the same proxies as requests. libcurl makes the TCP connection, then this
/// class uses it, with its own TLS. Used on the loop's thread; callbacks run on it, never within libcurl and never
/// within `send`, `close` or `start`.
final class RawSocket: TransferDelegate {
    /// Named by their ALPN identifiers.
    enum ApplicationProtocol: String {
        case http2 = "h2"
        case http1 = "http/1.1"
    }

    var onOpen: (() -> Void)?
    /// Received bytes; valid during the call.
    var onBytes: ((UnsafeRawBufferPointer) -> Void)?
    /// All queued bytes have been sent.
    var onDrained: (() -> Void)?
    /// The end: nil when the peer closed the connection in an orderly way. Not called after `close`.
    var onEnd: ((Status?) -> Void)?

    private let loop: TransportLoop
    private let address: ServerAddress
    private let applicationProtocol: ApplicationProtocol
    private var transfer: Transfer?
    private var pool: ConnectionPool?
    private var watch: DescriptorWatch?
    private var tls: TLSClientSession?
    /// For the handshake: what the connection has left of its time.
    private var timer: TransportTimer?
    private var startedAt: UInt64 = 0
    /// Connected, and the handshake is complete.
    private var isOpen = false
    private var output: [UInt8] = []
    /// Bytes of `output` that have been staged.
    private var taken = 0
    /// Bytes that are being sent. With TLS to a proxy, libcurl's OpenSSL requires that an incomplete write is repeated
    /// with the same memory and length.
    private let stage = UnsafeMutableRawBufferPointer.allocate(byteCount: RawSocket.chunkBytes, alignment: 1)
    private var stagedCount = 0
    private var stagedSent = 0
    private var isReading = true
    private var isFlushScheduled = false
    /// No more bytes can be sent.
    private var isBroken = false
    private var isOver = false

    private static let chunkBytes = 64 << 10
    /// The encrypted form fits a chunk.
    private static let plainChunkBytes = 48 << 10
    /// Reads in one tick, so that one connection does not occupy the thread.
    private static let readsPerTick = 16

    init(loop: TransportLoop, address: ServerAddress, applicationProtocol: ApplicationProtocol) {
        self.loop = loop
        self.address = address
        self.applicationProtocol = applicationProtocol
    }

    deinit { stage.deallocate() }

    /// - Throws: FAILED_PRECONDITION when a file of the TLS options cannot be used.
    func start() throws(Status) {
        if case .tls(let options) = address.security {
            tls = try TLSClientSession(
                address: address, options: options, applicationProtocol: applicationProtocol.rawValue)
        }
        let pool = try loop.makePool()
        self.pool = pool
        let transfer = try Transfer(loop: loop, pool: pool, delegate: self)
        self.transfer = transfer
        transfer.set(CURLOPT_CONNECT_ONLY, 1)
        transfer.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        transfer.set(CURLOPT_URL, "http://" + address.string)
        transfer.setConnection(
            .plaintext, address.proxy, connectTimeoutMilliseconds: address.connectTimeoutMilliseconds)
        if address.isSecure, address.proxy == .environment { setSecureProxyOfEnvironment(transfer) }
        startedAt = Monotonic.nanoseconds()
        try transfer.start()
    }

    /// libcurl sees an `http` connection, and would use the proxy for `http`. libcurl still evaluates `no_proxy`.
    private func setSecureProxyOfEnvironment(_ transfer: Transfer) {
        for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            guard let proxy = getenv(name), proxy.pointee != 0 else { continue }
            return transfer.set(CURLOPT_PROXY, String(cString: proxy))
        }
        transfer.set(CURLOPT_PROXY, "")
    }

    /// Bytes that were passed to `send` and not yet to the system; encrypted bytes count with their encrypted size.
    var queuedBytes: Int { output.count - taken + stagedCount - stagedSent + (tls?.outputCount ?? 0) }

    /// Queues bytes; they are sent before the loop waits again.
    func send(_ bytes: UnsafeRawBufferPointer) {
        guard !isOver else { return }
        output.append(contentsOf: bytes)
        guard isOpen, !isFlushScheduled else { return }
        isFlushScheduled = true
        _ = loop.schedule(afterMilliseconds: 0) { [weak self] in
            self?.isFlushScheduled = false
            self?.flush()
        }
    }

    /// Pauses reading. TCP pauses the peer, too, when the buffers are full.
    func setReading(_ isReading: Bool) {
        guard self.isReading != isReading else { return }
        self.isReading = isReading
        updateEvents()
        // TLS may hold bytes for which the descriptor is not readable any more.
        if isReading, watch != nil { _ = loop.schedule(afterMilliseconds: 0) { [weak self] in self?.read() } }
    }

    /// Queued bytes are sent as far as the system accepts them immediately.
    func close() {
        guard !isOver else { return }
        writeEnd()
        release()
    }

    private func release() {
        isOver = true
        onOpen = nil
        onBytes = nil
        onDrained = nil
        onEnd = nil
        cancelTimer()
        if let watch { loop.unwatch(watch) }
        watch = nil
        transfer?.detach()
        transfer = nil
        tls = nil
        if let pool { loop.close(pool) }
        pool = nil
    }

    private func cancelTimer() {
        if let timer { loop.cancelTimer(timer) }
        timer = nil
    }

    private func end(_ status: Status?) {
        guard !isOver else { return }
        let onEnd = onEnd
        release()
        onEnd?(status)
    }

    // MARK: The beginning

    func transferCompleted(_ transfer: Transfer, _ code: CURLcode) {
        guard code == CURLE_OK else { return end(failure(transfer, code)) }
        guard let descriptor = transfer.activeSocket else {
            return end(.unavailable("\(address.string): the connection was lost as soon as it was made"))
        }
        var noDelay: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &noDelay, 4)
        let watch = DescriptorWatch(descriptor: descriptor, events: Int16(POLLIN)) { [unowned self] in isReady($0) }
        self.watch = watch
        loop.watch(watch)
        guard let tls else { return open() }
        limitHandshake()
        _ = advance(tls)
    }

    private func limitHandshake() {
        let passed = Int((Monotonic.nanoseconds() - startedAt) / 1_000_000)
        let allowed = address.connectTimeoutMilliseconds
        timer = loop.schedule(afterMilliseconds: max(1, allowed - passed)) { [unowned self] in
            timer = nil
            end(.unavailable("\(address.string): no connection within \(allowed) ms: the TLS handshake isn't through"))
        }
    }

    private func open() {
        cancelTimer()
        isOpen = true
        updateEvents()
        onOpen?()
    }

    // MARK: Bytes

    private func updateEvents() {
        watch?.events = Int16((isReading || !isOpen ? POLLIN : 0) | (hasOutput ? POLLOUT : 0))
    }

    private func isReady(_ events: Int16) {
        if Int32(events) & POLLOUT != 0 { flush() }
        if Int32(events) & (POLLIN | POLLHUP | POLLERR) != 0 { read() }
    }

    private func read() {
        // Input that TLS held while reading was paused.
        if let tls, isOpen, isReading, !advance(tls) { return }
        var chunk = [UInt8](repeating: 0, count: RawSocket.chunkBytes)
        for _ in 0..<RawSocket.readsPerTick {
            guard isReading || !isOpen, !isOver, watch != nil, let transfer else { return }
            var count = 0
            let code = chunk.withUnsafeMutableBytes {
                curl_easy_recv(transfer.handle, $0.baseAddress, $0.count, &count)
            }
            if code == CURLE_AGAIN { return }
            guard code == CURLE_OK else { return end(failure(transfer, code)) }
            if count == 0 { return end(statusOfEnd) }
            guard let tls else {
                chunk.withUnsafeBytes { onBytes?(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
                continue
            }
            chunk.withUnsafeBytes { tls.receive(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            guard advance(tls) else { return }
        }
        _ = loop.schedule(afterMilliseconds: 0) { [weak self] in self?.read() }
    }

    /// The result when the peer has closed the TCP connection. TLS has its own end message: without it the connection
    /// was cut.
    private var statusOfEnd: Status? {
        guard tls != nil else { return nil }
        return .unavailable(
            isOpen
                ? "\(address.string): the connection broke off: it was closed without TLS's own end"
                : "\(address.string): the server closed the connection in the TLS handshake")
    }

    /// Continues with data that TLS has received. False: read no more now.
    private func advance(_ tls: TLSClientSession) -> Bool {
        do throws(Status) {
            if !isOpen {
                guard try tls.handshake() else {
                    flush()
                    return !isOver
                }
                open()
            }
            var chunk = [UInt8](repeating: 0, count: RawSocket.plainChunkBytes)
            while isReading, !isOver, case let reading = chunk.withUnsafeMutableBytes({ tls.read(into: $0) }) {
                switch reading {
                case .bytes(let count):
                    chunk.withUnsafeBytes { onBytes?(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
                    continue
                case .nothing: break
                case .end:
                    writeEnd()
                    end(nil)
                case .failed(let status): throw status
                }
                break
            }
        } catch {
            // The alert that notifies the peer.
            writeQueued()
            end(error)
        }
        if !isOver, hasOutput { flush() }
        return isReading && !isOver
    }

    private func flush() {
        guard !isOver, watch != nil else { return }
        if let failure = writeQueued() {
            isBroken = true
            // The input may contain the reason why the peer closed the connection.
            read()
            return end(failure)
        }
        updateEvents()
        if isOpen, queuedBytes == 0 { onDrained?() }
    }

    /// Output can be sent now.
    private var hasOutput: Bool {
        guard !isBroken else { return false }
        return stagedSent < stagedCount || (isOpen && taken < output.count) || (tls?.outputCount ?? 0) > 0
    }

    @discardableResult
    private func writeQueued() -> Status? {
        guard watch != nil, let transfer else { return nil }
        while hasOutput {
            if stagedSent == stagedCount {
                do throws(Status) { try fillStage() } catch { return error }
            }
            var count = 0
            let code = curl_easy_send(
                transfer.handle, stage.baseAddress.map { $0 + stagedSent }, stagedCount - stagedSent, &count)
            if code == CURLE_AGAIN { break }
            guard code == CURLE_OK else { return failure(transfer, code) }
            stagedSent += count
        }
        return nil
    }

    /// Sends all queued bytes and TLS's end, as far as the system accepts them.
    private func writeEnd() {
        writeQueued()
        guard let tls, isOpen, !hasOutput else { return }
        tls.sendEnd()
        writeQueued()
    }

    private func fillStage() throws(Status) {
        stagedSent = 0
        stagedCount = 0
        guard let tls else {
            stagedCount = min(stage.count, output.count - taken)
            stage.copyBytes(from: output[taken..<(taken + stagedCount)])
            return took(stagedCount)
        }
        if tls.outputCount == 0, isOpen, taken < output.count {
            let count = min(RawSocket.plainChunkBytes, output.count - taken)
            let failure = output.withUnsafeBytes {
                tls.write(UnsafeRawBufferPointer(rebasing: $0[taken..<(taken + count)]))
            }
            if let failure { throw failure }
            took(count)
        }
        stagedCount = tls.takeOutput(into: stage)
    }

    private func took(_ count: Int) {
        taken += count
        if taken == output.count {
            output.removeAll(keepingCapacity: output.count < 1 << 20)
            taken = 0
        } else if taken > 1 << 20 {
            output.removeSubrange(..<taken)
            taken = 0
        }
    }

    private func failure(_ transfer: Transfer, _ code: CURLcode) -> Status {
        CurlFailure.status(code, transfer.errorMessage(code), peer: address.string)
    }

    // MARK: TransferDelegate

    func transfer(_ transfer: Transfer, receivedLine line: UnsafeRawBufferPointer) {}
    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) {}
    func transferProcesses(_ transfer: Transfer) {}
}
