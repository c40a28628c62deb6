import HearthNetwork
import CNghttp2
import HearthConcurrency
import HearthModel
import HearthTLS

/// A client's HTTP/2 connection: many concurrent requests over one socket. For tests, the load generator, and the
/// server's outgoing calls.
///
/// All methods except `connect` are called on `loop`'s thread, and callbacks run on it.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
package final class HTTP2Client: @unchecked Sendable {
    package struct Configuration: Sendable {
        package var host: String
        package var port: Int
        /// TLS with a certificate that is verified for `host`.
        package var isSecure = false
        /// A PEM file of trusted certificates; nil: the system's.
        package var trustedCertificatesPath: String?
        /// For the TCP connection, and again for the TLS handshake.
        package var connectTimeoutMilliseconds = 10_000
        /// The bytes of one response that the server may send before the client has consumed them.
        package var streamWindowBytes = 1024 * 1024
        package var connectionWindowBytes = 16 * 1024 * 1024
        package var limits = NetworkLimits()

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        /// The server's name in requests, with an IPv6 address in brackets.
        package var authority: String { Self.authority(host, port) }

        package static func authority(_ host: String, _ port: Int) -> String {
            host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }

    package let loop: EventLoop
    package let configuration: Configuration
    /// The connection is closed. Open requests have failed before.
    package var onClose: (() -> Void)?
    /// The server accepts no new requests; the open ones continue.
    package var onGoAway: ((_ code: UInt32) -> Void)?
    /// A PING was answered.
    package var onPong: (() -> Void)?
    package private(set) var isClosed = false
    package private(set) var hasReceivedGoAway = false
    private var hasReceivedFrame = false
    /// Bytes that the server has sent, with answers to PINGs.
    package private(set) var receivedBytes = 0

    private var channel: SocketChannel?
    private(set) var session: OpaquePointer?
    private var streams: [Int32: HTTP2ClientStream] = [:]
    private var headerStream: HTTP2ClientStream?
    private let fields = FieldBuffer()
    private var waitingStreams: [HTTP2ClientStream] = []
    private var ready: ((Result<HTTP2Client, Status>) -> Void)?
    private var handshakeTimer: Timer?

    private static let frameSpaceBytes = 17 * 1024

    private init(configuration: Configuration, loop: EventLoop) {
        self.configuration = configuration
        self.loop = loop
    }

    deinit { nghttp2_session_del(session) }

    /// The message of calls whose connection ended before the server's first frame, which is that of its settings.
    package static let closedWithoutFrames = "the connection was closed before the server spoke HTTP/2"
    /// The message when a connection ends before a request can be sent: what a failed TLS handshake is to a client.
    package static let closedEarly = "the connection was closed before it was ready"

    // MARK: Connecting

    /// Resolves the host on the calling thread, connects on the loop, and calls `done` there.
    package static func connect(
        _ configuration: Configuration, on loop: EventLoop,
        _ done: @escaping @Sendable (Result<HTTP2Client, Status>) -> Void
    ) {
        Connector.open(
            host: configuration.host, port: configuration.port,
            timeoutMilliseconds: configuration.connectTimeoutMilliseconds, on: loop
        ) { result in
            let client = HTTP2Client(configuration: configuration, loop: loop)
            client.ready = done
            switch result {
            case .success(let socket): client.adopt(socket.descriptor, socket.address)
            case .failure(let status): client.fail(status)
            }
        }
    }

    /// A connection in a simulation.
    package static func simulated(
        _ configuration: Configuration, over socket: any SimulatedSocket, on loop: EventLoop
    ) -> HTTP2Client {
        let client = HTTP2Client(configuration: configuration, loop: loop)
        let channel = SocketChannel(
            loop: loop, simulated: socket, remoteAddress: "", limits: configuration.limits, counters: LoopCounters())
        channel.driver = client
        client.channel = channel
        _ = channel.start()
        client.begin()
        return client
    }

    private func adopt(_ descriptor: Int32, _ address: String) {
        let channel = SocketChannel(
            loop: loop, descriptor: descriptor, remoteAddress: address, limits: configuration.limits,
            counters: LoopCounters())
        channel.driver = self
        self.channel = channel
        guard channel.start() else { return fail(.unavailable("cannot watch the socket")) }
        guard configuration.isSecure else { return begin() }
        do {
            let context = try TLSContext.client(
                trustedCertificatesPath: configuration.trustedCertificatesPath, protocols: ["h2"])
            guard
                let tls = TLSSession(
                    context: context, descriptor: descriptor, serverName: configuration.host)
            else { return fail(.unavailable("cannot set up TLS")) }
            channel.startTLS(tls)
            let milliseconds = configuration.connectTimeoutMilliseconds
            handshakeTimer = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in
                self?.fail(.unavailable("the server did not complete the TLS handshake within \(milliseconds) ms"))
            }
        } catch { fail(error) }
    }

    private func begin() {
        var options: OpaquePointer?
        guard nghttp2_option_new(&options) == 0 else { return fail(.unavailable("no memory")) }
        defer { nghttp2_option_del(options) }
        nghttp2_option_set_no_auto_window_update(options, 1)
        http2_limit_continuations(options, configuration.limits.continuationFramesMax)
        // Use the server's higher limit immediately; its SETTINGS follow soon.
        nghttp2_option_set_peer_max_concurrent_streams(options, 100)
        let settings = [
            http2_setting(Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), 0),
            http2_setting(
                Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), UInt32(configuration.streamWindowBytes)),
        ]
        guard
            nghttp2_session_client_new2(
                &session, HTTP2ClientCallbacks.shared.table, Unmanaged.passUnretained(self).toOpaque(), options) == 0,
            nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count) == 0,
            nghttp2_session_set_local_window_size(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(configuration.connectionWindowBytes)) == 0
        else { return fail(.unavailable("cannot set up HTTP/2")) }
        channel?.flushLater()
        let ready = ready
        self.ready = nil
        ready?(.success(self))
    }

    private func fail(_ status: Status) {
        let ready = ready
        self.ready = nil
        close()
        ready?(.failure(status))
    }

    // MARK: Requests

    /// Sends a request's head; the body, when there is one, follows by `write` and `end`.
    package func open(
        method: String, path: String, headers: [HTTPHeader] = [], hasBody: Bool
    ) -> HTTP2ClientStream {
        var fields = HTTP2Fields()
        fields.append(":method", method)
        fields.append(":scheme", configuration.isSecure ? "https" : "http")
        fields.append(":authority", configuration.authority)
        fields.append(":path", path)
        fields.append(headers)
        return open(fields, hasBody: hasBody)
    }

    func open(_ fields: HTTP2Fields, hasBody: Bool) -> HTTP2ClientStream {
        let stream = HTTP2ClientStream(client: self)
        let id = fields.withFields { pointer, count -> Int32 in
            guard hasBody else { return nghttp2_submit_request(session, nil, pointer, count, nil, nil) }
            var provider = http2_data_provider(Unmanaged.passUnretained(stream).toOpaque(), readClientOutput)
            return nghttp2_submit_request(session, nil, pointer, count, &provider, nil)
        }
        guard id > 0, !isClosed else {
            loop.execute { stream.failed(.unavailable("the connection accepts no more requests")) }
            return stream
        }
        stream.id = id
        streams[id] = stream
        channel?.flushLater()
        return stream
    }

    /// A whole request and its whole response.
    package func request(
        method: String, path: String, headers: [HTTPHeader] = [], body: [UInt8] = [],
        _ done: @escaping (Result<HTTPClientAnswer, Status>) -> Void
    ) {
        let stream = open(method: method, path: path, headers: headers, hasBody: !body.isEmpty)
        if !body.isEmpty {
            stream.write(body)
            stream.end()
        }
        stream.collect(done)
    }

    package func ping() {
        nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
        channel?.flushLater()
    }

    /// Changes the bytes that the server may send on each stream before they are consumed.
    package func changeStreamWindow(_ bytes: Int) {
        submitSettings([http2_setting(Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), UInt32(bytes))])
    }

    /// Changes the bytes that the server may keep of header fields, and those of a frame.
    package func changeSettings(headerTableBytes: Int, frameBytesMax: Int) {
        submitSettings([
            http2_setting(Int32(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE.rawValue), UInt32(headerTableBytes)),
            http2_setting(Int32(NGHTTP2_SETTINGS_MAX_FRAME_SIZE.rawValue), UInt32(frameBytesMax)),
        ])
    }

    /// Changes the bytes that the server may send on all streams before they are consumed.
    package func changeConnectionWindow(_ bytes: Int) {
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(bytes))
        channel?.flushLater()
    }

    private func submitSettings(_ settings: [nghttp2_settings_entry]) {
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
        channel?.flushLater()
    }

    /// Closes immediately; open requests fail with UNAVAILABLE.
    package func close() {
        if let channel { channel.close() } else { channelClosed() }
    }

    // MARK: Called by streams

    func flushLater() { channel?.flushLater() }
    func waitsForCapacity(_ stream: HTTP2ClientStream) { waitingStreams.append(stream) }

    // MARK: Called by nghttp2

    func beganHeaders(_ id: Int32) {
        headerStream = streams[id]
        fields.reset()
    }

    func receivedField(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        // Larger heads of a server are dropped; the stream then fails without a status.
        guard fields.sizeBytes <= configuration.limits.headBytesMax else { return }
        fields.append(name: name, value: value)
    }

    func receivedFrame(_ frame: UnsafePointer<nghttp2_frame>) {
        hasReceivedFrame = true
        let flags = UInt32(http2_frame_flags(frame))
        switch UInt32(http2_frame_type(frame)) {
        case NGHTTP2_HEADERS.rawValue:
            headerStream?.receivedHead(HeaderBlock(fields))
            headerStream = nil
            if flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { streams[http2_frame_stream(frame)]?.receivedEnd() }
        case NGHTTP2_DATA.rawValue where flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0:
            streams[http2_frame_stream(frame)]?.receivedEnd()
        case NGHTTP2_PING.rawValue where flags & NGHTTP2_FLAG_ACK.rawValue != 0: onPong?()
        case NGHTTP2_GOAWAY.rawValue:
            hasReceivedGoAway = true
            onGoAway?(http2_goaway_code(frame))
        default: break
        }
    }

    func receivedData(_ id: Int32, _ bytes: UnsafeRawBufferPointer) {
        guard let stream = streams[id], !stream.isFinished else {
            nghttp2_session_consume_connection(session, bytes.count)
            return
        }
        stream.received(bytes)
    }

    func closedStream(_ id: Int32, code: UInt32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        // Without a frame, what came was no HTTP/2, and the code is nghttp2's own.
        if hasReceivedFrame { stream.closed(code: code) } else { stream.failed(closedStatus) }
    }

    private var closedStatus: Status {
        .unavailable(hasReceivedFrame ? "the connection was closed" : Self.closedWithoutFrames)
    }
}

extension HTTP2Client: ChannelDriver {
    package func secured(applicationProtocol: String?) {
        handshakeTimer?.cancel()
        guard applicationProtocol == "h2" else { return fail(.unavailable("the server doesn't speak HTTP/2")) }
        begin()
    }

    package func received(_ bytes: UnsafeRawBufferPointer) {
        receivedBytes += bytes.count
        let result = nghttp2_session_mem_recv(session, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        guard result >= 0 else { return close() }
        channel?.flushLater()
    }

    package func receivedEnd() { close() }

    package func produceOutput(into scratch: OutputScratch) throws(BrokenInvariant) {
        guard session != nil else { return }
        while scratch.space >= HTTP2Client.frameSpaceBytes {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            guard count > 0, let data else { break }
            try scratch.append(data, count)
        }
        if nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 {
            channel?.closeWhenFlushed(lingers: false)
        }
    }

    package func outputFlushed() {
        guard !waitingStreams.isEmpty else { return }
        let waiting = waitingStreams
        waitingStreams = []
        for stream in waiting where !stream.hasCapacityAgain() { waitingStreams.append(stream) }
    }

    package func channelClosed() {
        guard !isClosed else { return }
        isClosed = true
        handshakeTimer?.cancel()
        let streams = streams
        self.streams = [:]
        headerStream = nil
        waitingStreams = []
        for stream in streams.values { stream.failed(closedStatus) }
        let onClose = onClose
        self.onClose = nil
        onGoAway = nil
        onPong = nil
        channel = nil
        onClose?()
        if let ready {
            self.ready = nil
            ready(.failure(.unavailable(Self.closedEarly)))
        }
    }
}

/// nghttp2 requests the next bytes of a request.
private func readClientOutput(
    _ session: OpaquePointer?, _ id: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let flags, let buffer, let pointer = source?.pointee.ptr else {
        return Int(NGHTTP2_ERR_CALLBACK_FAILURE)
    }
    return Unmanaged<HTTP2ClientStream>.fromOpaque(pointer).takeUnretainedValue().read(buffer, length, flags)
}
