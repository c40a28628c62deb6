import HearthHTTPClient
import HearthModel
import HearthWebSocket
import Synchronization

/// A client's WebSocket. It answers pings automatically; it does not reconnect.
///
/// All methods may be called from any thread; none blocks. Events are delivered on the transport's thread, one after
/// another. The connection lives until `.closed` or `close`, independent of references.
///
/// `@unchecked Sendable`: state belongs to the loop's thread, where closures pass it; the rest is atomic or locked.
package final class WebSocketClient: @unchecked Sendable {
    package enum Event: Sendable {
        /// The handshake is complete.
        case opened
        case string([UInt8])
        case binary([UInt8])
        /// The system has accepted all bytes that were passed to `send`.
        case drained
        /// No event follows.
        case closed(End)
    }

    package enum End: Sendable, Equatable {
        /// The server sent a close frame.
        case byPeer(WebSocketCloseCode?, reason: String)
        /// The server answered the handshake with a status other than 101. Redirections are not followed.
        case refused(httpStatus: Int, Status)
        /// No connection, a broken connection, or a server that violates the protocol.
        case failed(Status)
    }

    package struct Options: Sendable {
        /// Bytes of one received message, after decompression.
        package var messageBytesMax = 256 << 20
        /// Messages of at least this size are compressed when the server agrees; nil: compression is not offered.
        package var compressionThresholdBytes: Int?
        /// From the start to the end of the handshake, including connecting.
        package var handshakeTimeoutMilliseconds = 30_000
        /// The interval of checks for input from the server. Without input a ping is sent; without input in the next
        /// interval, too, the connection is closed: after at most three intervals.
        package var silenceMilliseconds = 25_000
        /// The time that `close` waits for the server's close frame in the background.
        package var closeTimeoutMilliseconds = 2_000

        package init() {}
    }

    private enum State {
        case starting
        /// Connected; the response to the handshake is being read.
        case upgrading(WebSocketUpgradeOffer, UpgradeAnswerReader)
        case open(WebSocketConnection)
        /// Our close frame is sent.
        case closing(WebSocketConnection)
        case over
    }

    private let transport: Transport
    private let address: ServerAddress
    private let path: String
    private let fields: [HTTPField]
    private let options: Options
    private let isSilenced = Atomic<Bool>(false)
    /// Bytes of messages that are not framed yet.
    private let unframedBytes = Atomic<Int>(0)
    private let raw = Mutex<RawConnection?>(nil)

    // Used on the loop's thread.
    private var onEvent: ((Event) -> Void)?
    private var state = State.starting
    /// Messages sent before the handshake is complete.
    private var early: [(payload: [UInt8], isString: Bool)] = []
    private var isReceiving = true
    private var timer: TransportTimer?
    private var hasReceived = false
    private var isPinged = false
    /// Of pongs since the output was last sent as a whole.
    private var pongBytes = 0
    /// A server that sends pings and reads no pongs gets no more than these.
    private static let pongBytesMax = 64 << 10

    /// Begins to connect.
    ///
    /// - Parameters:
    ///   - path: includes the query, percent-encoded.
    ///   - headers: in addition to `host` and the fields of the handshake.
    package init(
        transport: Transport, address: ServerAddress, path: String, headers: [HTTPField] = [],
        options: Options = Options(), onEvent: @escaping @Sendable (Event) -> Void
    ) {
        self.transport = transport
        self.address = address
        self.path = path
        fields = headers
        self.options = options
        self.onEvent = onEvent
        if !transport.loop.execute({ self.start() }) {
            onEvent(.closed(.failed(Status(.cancelled, "the transport has been shut down"))))
        }
    }

    /// Bytes that were passed to `send` and that the system did not accept yet.
    package var queuedBytes: Int {
        unframedBytes.load(ordering: .relaxed) + raw.withLock { $0?.queuedBytes ?? 0 }
    }

    /// Queues a message, also before `opened`; dropped after the end.
    /// - Parameter string: valid UTF-8.
    package func send(string: [UInt8]) { send(string, isString: true) }

    package func send(binary: [UInt8]) { send(binary, isString: false) }

    private func send(_ payload: [UInt8], isString: Bool) {
        unframedBytes.add(payload.count, ordering: .relaxed)
        transport.loop.execute { self.sendNow(payload, isString: isString) }
    }

    /// Pauses reading. The server is paused, too, when the buffers are full; a few messages may still be delivered.
    /// Pings are not answered during the pause, so it must be short.
    package func setReceiving(_ isReceiving: Bool) {
        transport.loop.execute {
            self.isReceiving = isReceiving
            // The handshake is always read.
            if case .open = self.state { self.raw.withLock { $0 }?.setReceiving(isReceiving) }
        }
    }

    /// Sends a close frame after the queued messages, and waits for the server's answer in the background. No event
    /// follows.
    package func close(_ code: WebSocketCloseCode = .normal, reason: String = "") {
        isSilenced.store(true, ordering: .sequentiallyConsistent)
        transport.loop.execute { self.closeNow(code, reason) }
    }

    // MARK: On the loop's thread

    private func start() {
        guard case .starting = state, !isSilenced.load(ordering: .sequentiallyConsistent) else { return end() }
        do throws(Status) {
            let offer = WebSocketUpgradeOffer(offersCompression: options.compressionThresholdBytes != nil)
            let request = try UpgradeRequest.bytes(
                address: address, path: path, fields: fields + offer.fields.map { HTTPField($0.name, $0.value) })
            let connection = RawConnection(transport: transport, address: address) { self.take($0) }
            raw.withLock { $0 = connection }
            connection.send(request)
            state = .upgrading(offer, UpgradeAnswerReader())
            let milliseconds = options.handshakeTimeoutMilliseconds
            timer = transport.loop.schedule(afterMilliseconds: milliseconds) { [unowned self] in
                timer = nil
                finish(.failed(.unavailable("\(address.string): no WebSocket within \(milliseconds) ms")))
            }
        } catch { finish(.failed(error)) }
    }

    private func take(_ event: RawConnection.Event) {
        switch event {
        case .opened: break
        case .received(let bytes): receive(bytes)
        case .drained:
            pongBytes = 0
            if case .open = state, unframedBytes.load(ordering: .relaxed) == 0 { deliver(.drained) }
        case .closed(let status):
            finish(
                .failed(
                    status ?? .unavailable("\(address.string): the server closed the connection without a response")))
        }
    }

    private func receive(_ bytes: [UInt8]) {
        hasReceived = true
        switch state {
        case .starting, .over: break
        case .upgrading(let offer, var reader):
            do throws(Status) {
                guard let answer = try reader.read(bytes) else {
                    state = .upgrading(offer, reader)
                    return
                }
                try upgrade(offer, answer)
            } catch { finish(.failed(error)) }
        case .open(let connection), .closing(let connection): read(bytes, connection)
        }
    }

    private func upgrade(_ offer: WebSocketUpgradeOffer, _ answer: UpgradeAnswer) throws(Status) {
        guard answer.status == 101 else {
            let status = Status.unavailable(
                "\(address.string): the server answered \(answer.status) and doesn't speak WebSocket at \(path)")
            return finish(.refused(httpStatus: answer.status, status))
        }
        let deflate: WebSocketDeflate?
        do throws(WebSocketHandshakeFailure) {
            deflate = try offer.check { name in answer.fields.filter { $0.name == name }.map(\.value) }
        } catch { throw .unavailable("\(address.string): \(error.reason)") }
        cancelTimer()
        let connection = WebSocketConnection(
            role: .client,
            limits: WebSocketLimits(
                messageBytesMax: options.messageBytesMax, fragmentsMax: 1 << 20,
                compressionThresholdBytes: options.compressionThresholdBytes ?? 0), deflate: deflate)
        state = .open(connection)
        if !isReceiving { raw.withLock { $0 }?.setReceiving(false) }
        watchForSilence()
        deliver(.opened)
        let early = early
        self.early = []
        for message in early { sendNow(message.payload, isString: message.isString) }
        if !answer.rest.isEmpty { read(answer.rest, connection) }
    }

    /// A network that drops all packets reports no error. The system detects only missing acknowledgements of sent
    /// data, after a quarter of an hour.
    private func watchForSilence() {
        timer = transport.loop.schedule(afterMilliseconds: options.silenceMilliseconds) { [unowned self] in
            timer = nil
            guard case .open(let connection) = state else { return }
            // While reading is paused no input can be detected.
            if hasReceived || !isReceiving {
                (hasReceived, isPinged) = (false, false)
            } else if isPinged {
                return finish(
                    .failed(
                        .unavailable(
                            "\(address.string): nothing was received for \(2 * options.silenceMilliseconds) ms")))
            } else {
                isPinged = true
                sendRaw(connection.ping())
            }
            watchForSilence()
        }
    }

    private func read(_ bytes: [UInt8], _ connection: WebSocketConnection) {
        do throws(WebSocketFailure) {
            try bytes.withUnsafeBufferPointer { input throws(WebSocketFailure) in
                var position = 0
                while let event = try connection.next(UnsafeRawBufferPointer(input), &position) {
                    take(event, connection)
                    if case .over = state { return }
                }
            }
        } catch {
            sendRaw(connection.close(error.code, reason: error.reason))
            finish(.failed(.unavailable("\(address.string): the server broke WebSocket's protocol: \(error.reason)")))
        }
    }

    private func take(_ event: WebSocketConnection.Event, _ connection: WebSocketConnection) {
        switch event {
        case .string(let string): deliver(.string(string))
        case .binary(let bytes): deliver(.binary(bytes))
        case .ping(let payload):
            guard pongBytes < Self.pongBytesMax else { break }
            let pong = connection.pong(payload)
            pongBytes += pong.count
            sendRaw(pong)
        case .pong: break
        case .close(let code, let reason):
            sendRaw(connection.close(code))
            finish(.byPeer(code, reason: reason))
        }
    }

    private func sendNow(_ payload: [UInt8], isString: Bool) {
        switch state {
        case .starting, .upgrading:
            // It counts until it is framed.
            early.append((payload, isString))
            return
        case .open(let connection):
            sendRaw(isString ? connection.send(string: payload) : connection.send(binary: payload))
        case .closing, .over: break
        }
        unframedBytes.subtract(payload.count, ordering: .relaxed)
    }

    private func sendRaw(_ bytes: [UInt8]) {
        if !bytes.isEmpty { raw.withLock { $0 }?.send(bytes) }
    }

    private func deliver(_ event: Event) {
        if !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(event) }
    }

    private func closeNow(_ code: WebSocketCloseCode, _ reason: String) {
        guard case .open(let connection) = state else {
            if case .closing = state { return }
            return end()
        }
        onEvent = nil
        cancelTimer()
        state = .closing(connection)
        sendRaw(connection.close(code, reason: reason))
        // While reading is paused the answer cannot be read.
        raw.withLock { $0 }?.setReceiving(true)
        timer = transport.loop.schedule(afterMilliseconds: options.closeTimeoutMilliseconds) { [unowned self] in
            timer = nil
            end()
        }
    }

    private func finish(_ outcome: End) {
        let onEvent = onEvent
        end()
        if !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(.closed(outcome)) }
    }

    private func end() {
        onEvent = nil
        state = .over
        early = []
        unframedBytes.store(0, ordering: .relaxed)
        cancelTimer()
        let connection = raw.withLock { raw in
            defer { raw = nil }
            return raw
        }
        connection?.close()
    }

    private func cancelTimer() {
        if let timer { transport.loop.cancelTimer(timer) }
        timer = nil
    }
}
