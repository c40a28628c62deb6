import CNghttp2
import HearthHTTPClient
import HearthModel

/// HTTP/2 for one stream on a connection of its own, by libnghttp2 over a `RawSocket`.
///
/// libcurl's own HTTP/2 (7.88) is unsuitable for streams. A response that has only a head, sent before the request is
/// complete, is lost, and servers use such responses to reject a stream. Bytes held by a paused consumer can be lost.
/// PINGs are not sent.
///
/// Used on the loop's thread. Callbacks run on it, never within a method.
final class HTTP2StreamSession {
    /// The connection is open and the request's head is being sent.
    var onOpen: (() -> Void)?
    /// Called after bytes were received or the stream ended: recorded lines and bytes can be processed.
    var onProgress: (() -> Void)?
    /// A line of the response, in the form of libcurl's header callback.
    var onLine: ((UnsafeRawBufferPointer) -> Void)?
    var onData: ((UnsafeRawBufferPointer) -> Void)?
    /// Fills the request's body.
    var fill: ((UnsafeMutableRawBufferPointer) -> Transfer.Output)?
    /// The stream has ended: nil for an orderly end, with any status.
    private(set) var end: End?

    enum End {
        case complete
        case failed(Status)
    }

    private let loop: TransportLoop
    private let address: ServerAddress
    private let fields: [HTTPField]
    private let keepAlive: KeepAlive
    private let socket: RawSocket
    private var session: OpaquePointer?
    private var streamIdentifier: Int32 = -1
    private var isDeferred = false
    private var isAnswerComplete = false
    private var isClosed = false
    private var pingTimer: TransportTimer?
    private var lastReceived: UInt64 = 0
    private var isPingOpen = false
    private var isReading = true

    private static let windowBytes = 1 << 20
    private static let queuedBytesMax = 256 << 10

    /// - Parameter fields: the request's fields, pseudo-header fields first.
    init(loop: TransportLoop, address: ServerAddress, fields: [HTTPField], keepAlive: KeepAlive) {
        self.keepAlive = keepAlive
        self.loop = loop
        self.address = address
        self.fields = fields
        socket = RawSocket(loop: loop, address: address, applicationProtocol: .http2)
    }

    deinit { nghttp2_session_del(session) }

    func start() throws(Status) {
        socket.onOpen = { [unowned self] in connected() }
        socket.onBytes = { [unowned self] in received($0) }
        socket.onDrained = { [unowned self] in pump() }
        socket.onEnd = { [unowned self] in disconnected($0) }
        try socket.start()
    }

    /// There is output to send.
    func resumeSending() {
        guard isDeferred, end == nil, !isClosed else { return }
        isDeferred = false
        nghttp2_session_resume_data(session, streamIdentifier)
        pump()
    }

    func setReading(_ isReading: Bool) {
        self.isReading = isReading
        socket.setReading(isReading)
    }

    /// Resets the stream if it is open, and closes the connection.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        onOpen = nil
        onProgress = nil
        onLine = nil
        onData = nil
        fill = nil
        if let pingTimer { loop.cancelTimer(pingTimer) }
        pingTimer = nil
        if end == nil, streamIdentifier > 0 {
            nghttp2_submit_rst_stream(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), streamIdentifier, UInt32(NGHTTP2_CANCEL.rawValue))
            pump(limit: .max)
        }
        socket.close()
    }

    // MARK: The connection

    private func connected() {
        do throws(Status) { try begin() } catch { return fail(error) }
        lastReceived = Monotonic.nanoseconds()
        pingLater()
        pump()
        onOpen?()
    }

    private func begin() throws(Status) {
        let settings = [
            http2_setting(Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), 0),
            http2_setting(
                Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), UInt32(HTTP2StreamSession.windowBytes)),
        ]
        let context = Unmanaged.passUnretained(self).toOpaque()
        guard nghttp2_session_client_new(&session, HTTP2StreamCallbacks.shared.table, context) == 0,
            nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count) == 0,
            nghttp2_session_set_local_window_size(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(HTTP2StreamSession.windowBytes)) == 0
        else { throw .resourceExhausted("HTTP/2 cannot be set up") }
        streamIdentifier = submitRequest(context)
        guard streamIdentifier > 0 else { throw .internalError("the request cannot be sent over HTTP/2") }
    }

    private func submitRequest(_ context: UnsafeMutableRawPointer) -> Int32 {
        // nghttp2 copies the strings: they must exist during the call only.
        var strings: [UInt8] = []
        for field in fields { strings += Array(field.name.utf8) + Array(field.value.utf8) }
        var provider = http2_data_provider(context, fillStreamBody)
        return strings.withUnsafeBufferPointer { strings in
            guard var position = strings.baseAddress else { return -1 }
            let entries = fields.map { field in
                let name = position
                let value = name + field.name.utf8.count
                position = value + field.value.utf8.count
                // Tokens must not enter the compression tables.
                let isSecret: Int32 = field.name == "authorization" ? 1 : 0
                return http2_copied_field(name, field.name.utf8.count, value, field.value.utf8.count, isSecret)
            }
            return nghttp2_submit_request(session, nil, entries, entries.count, &provider, nil)
        }
    }

    private func pump(limit: Int = HTTP2StreamSession.queuedBytesMax) {
        guard let session else { return }
        while socket.queuedBytes < limit {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            guard count > 0, let data else { break }
            socket.send(UnsafeRawBufferPointer(start: data, count: count))
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard let session, !isClosed else { return }
        lastReceived = Monotonic.nanoseconds()
        isPingOpen = false
        let result = nghttp2_session_mem_recv(session, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        if result < 0, end == nil {
            let string = String(cString: nghttp2_strerror(Int32(result)))
            return fail(.unavailable("\(address.string): the server does not speak proper HTTP/2: \(string)"))
        }
        pump()
        // After a violation of the protocol nghttp2 takes the peer's bytes without a look at them, and says so only here. While
        // there are bytes, no PING would end the stream.
        if end == nil, !isClosed, nghttp2_session_want_read(session) == 0 {
            return fail(.unavailable("\(address.string): the server does not speak proper HTTP/2"))
        }
        onProgress?()
    }

    private func disconnected(_ status: Status?) {
        fail(status ?? .unavailable("\(address.string): the server closed the connection"))
    }

    private func fail(_ status: Status) {
        if end == nil { end = .failed(status) }
        onProgress?()
    }

    /// Sends a PING after a silence, and ends the stream after a further silence.
    private func pingLater() {
        let silentMilliseconds = Int((Monotonic.nanoseconds() - lastReceived) / 1_000_000)
        let wait = isPingOpen ? keepAlive.answerMilliseconds : max(1, keepAlive.idleMilliseconds - silentMilliseconds)
        pingTimer = loop.schedule(afterMilliseconds: wait) { [unowned self] in
            pingTimer = nil
            ping()
        }
    }

    private func ping() {
        if !isReading {
            // Receiving is paused: the missing input is not the server's fault.
            lastReceived = Monotonic.nanoseconds()
            isPingOpen = false
        }
        if isPingOpen { return fail(.unavailable("\(address.string): the server does not answer any more")) }
        if Monotonic.nanoseconds() - lastReceived >= UInt64(max(0, keepAlive.idleMilliseconds)) * 1_000_000 {
            isPingOpen = true
            nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
            pump()
        }
        pingLater()
    }

    // MARK: Called by nghttp2: takes note only

    fileprivate func receivedField(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        let line: [UInt8]
        if name.elementsEqual(":status".utf8) {
            line = Array("HTTP/2 ".utf8) + value
        } else {
            line = name + [UInt8(ascii: ":")] + value
        }
        line.withUnsafeBytes { onLine?($0) }
    }

    fileprivate func receivedHeadEnd() { onLine?(UnsafeRawBufferPointer(start: nil, count: 0)) }

    fileprivate func receivedEnd() { isAnswerComplete = true }

    fileprivate func received(data: UnsafeRawBufferPointer) { onData?(data) }

    fileprivate func streamClosed(_ code: UInt32) {
        guard end == nil else { return }
        let string = String(cString: nghttp2_http2_strerror(code))
        end =
            isAnswerComplete
            ? .complete
            : .failed(CurlFailure.streamReset(Int(code), "\(address.string): the server reset the stream: \(string)"))
    }

    fileprivate func fill(_ buffer: UnsafeMutableRawBufferPointer, _ flags: UnsafeMutablePointer<UInt32>?) -> Int {
        switch fill?(buffer) ?? .end {
        case .bytes(let count): return count
        case .end:
            flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
            return 0
        case .wait:
            isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
    }

    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> HTTP2StreamSession {
        guard let context else { preconditionFailure("a session without its owner") }
        return Unmanaged<HTTP2StreamSession>.fromOpaque(context).takeUnretainedValue()
    }
}

private func fillStreamBody(
    _ session: OpaquePointer?, _ stream: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    HTTP2StreamSession.from(context).fill(UnsafeMutableRawBufferPointer(start: buffer, count: length), flags)
}

/// Created once; nghttp2 copies them into each session.
///
/// `@unchecked Sendable`: immutable after creation.
private struct HTTP2StreamCallbacks: @unchecked Sendable {
    let table: OpaquePointer?

    static let shared = HTTP2StreamCallbacks()

    private init() {
        var table: OpaquePointer?
        guard nghttp2_session_callbacks_new(&table) == 0 else {
            self.table = nil
            return
        }
        nghttp2_session_callbacks_set_on_header_callback(table) {
            _, _, name, nameCount, value, valueCount, _, context in
            HTTP2StreamSession.from(context).receivedField(
                UnsafeBufferPointer(start: name, count: nameCount), UnsafeBufferPointer(start: value, count: valueCount)
            )
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(table) { _, frame, context in
            guard let frame else { return 0 }
            let session = HTTP2StreamSession.from(context)
            let isHead = UInt32(http2_frame_type(frame)) == NGHTTP2_HEADERS.rawValue
            if isHead { session.receivedHeadEnd() }
            if isHead || UInt32(http2_frame_type(frame)) == NGHTTP2_DATA.rawValue,
                UInt32(http2_frame_flags(frame)) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
            {
                session.receivedEnd()
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) { _, _, _, data, count, context in
            HTTP2StreamSession.from(context).received(data: UnsafeRawBufferPointer(start: data, count: count))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(table) { _, _, code, context in
            HTTP2StreamSession.from(context).streamClosed(code)
            return 0
        }
        self.table = table
    }
}
