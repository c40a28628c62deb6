import HearthModel
import HearthWebSocket
import Synchronization

/// A client's WebSocket. Pings are answered by itself; it doesn't reconnect.
///
/// All methods may be called from any thread; none blocks. Events come on the transport's thread, one after another. It
/// lives until `.closed` or `close`, whoever holds it.
///
/// `@unchecked Sendable`: state belongs to the loop's thread, where closures carry it; the rest is atomic or locked.
package final class WebSocketClient: @unchecked Sendable {
    package enum Event: Sendable {
        /// The handshake is through.
        case opened
        case string([UInt8])
        case binary([UInt8])
        /// All that was given to `send` has been taken by the system.
        case drained
        /// Nothing comes after it.
        case closed(End)
    }

    package enum End: Sendable, Equatable {
        /// By a close frame.
        case byPeer(WebSocketCloseCode?, reason: String)
        /// The server answered the handshake with another status than 101. Redirections aren't followed.
        case refused(httpStatus: Int, Status)
        /// No connection, one that broke off, or a server that doesn't keep to the protocol.
        case failed(Status)
    }

    package struct Options: Sendable {
        /// Bytes of one received message, after decompression.
        package var messageBytesMax = 256 << 20
        /// Messages of at least this many bytes are compressed when the server agrees; nil: compression isn't offered.
        package var compressionThresholdBytes: Int?
        /// From the beginning to the end of the handshake, connecting included.
        package var handshakeTimeoutMilliseconds = 30_000
        /// How often it is looked whether the server has sent anything. When it hasn't, it is pinged; when it hasn't again, the
        /// connection is given up: after three times this at most.
        package var silenceMilliseconds = 25_000
        /// How long `close` waits for the server's close frame in the background.
        package var closeTimeoutMilliseconds = 2_000

        package init() {}
    }

    private enum State {
        case starting
        /// Connected; the answer to the handshake is being read.
        case upgrading(WebSocketUpgradeOffer, UpgradeAnswerReader)
        case open(WebSocketConnection)
        /// Our close frame is out.
        case closing(WebSocketConnection)
        case over
    }

    private let transport: Transport
    private let address: ServerAddress
    private let path: String
    private let fields: [HTTPField]
    private let options: Options
    private let isSilenced = Atomic<Bool>(false)
    /// Bytes of messages that aren't frames yet.
    private let unframedBytes = Atomic<Int>(0)
    private let raw = Mutex<RawConnection?>(nil)

    // The loop's thread.
    private var onEvent: ((Event) -> Void)?
    private var state = State.starting
    /// Messages from before the handshake's end.
    private var early: [(payload: [UInt8], isString: Bool)] = []
    private var isReceiving = true
    private var timer: TransportTimer?
    private var hasHeard = false
    private var isPinged = false

    /// Begins to connect.
    ///
    /// - Parameters:
    ///   - path: with the query, percent-encoded.
    ///   - headers: besides `host` and those of the handshake.
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

    /// Bytes that were given to `send` and not yet taken by the system.
    package var queuedBytes: Int {
        unframedBytes.load(ordering: .relaxed) + raw.withLock { $0?.queuedBytes ?? 0 }
    }

    /// Queues a message, also before `opened`; dropped after the end.
    /// - Parameter text: valid UTF-8.
    package func send(string: [UInt8]) { send(string, isString: true) }

    package func send(binary: [UInt8]) { send(binary, isString: false) }

    private func send(_ payload: [UInt8], isString: Bool) {
        unframedBytes.add(payload.count, ordering: .relaxed)
        transport.loop.execute { self.sendNow(payload, isString: isString) }
    }

    /// Without it the server is held back once the buffers are full; a little may still come. Pings aren't answered
    /// then, so not for long.
    package func setReceiving(_ isReceiving: Bool) {
        transport.loop.execute {
            self.isReceiving = isReceiving
            // The handshake is read in any case.
            if case .open = self.state { self.raw.withLock { $0 }?.setReceiving(isReceiving) }
        }
    }

    /// Says goodbye after what is queued, and waits for the server's answer in the background. No event comes
    /// afterwards.
    package func close(_ code: WebSocketCloseCode = .normal, reason: String = "") {
        isSilenced.store(true, ordering: .sequentiallyConsistent)
        transport.loop.execute { self.closeNow(code, reason) }
    }

    // MARK: On the loop's thread

    private func start() {
        guard case .starting = state, !isSilenced.load(ordering: .sequentiallyConsistent) else { return end() }
        do throws(Status) {
            let offer = WebSocketUpgradeOffer(offersCompression: options.compressionThresholdBytes != nil)
            let request = try UpgradeRequestText.bytes(
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
            if case .open = state, unframedBytes.load(ordering: .relaxed) == 0 { deliver(.drained) }
        case .closed(let status):
            finish(
                .failed(status ?? .unavailable("\(address.string): the server closed the connection without a word")))
        }
    }

    private func receive(_ bytes: [UInt8]) {
        hasHeard = true
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

    /// A network that drops everything doesn't say so, and the system notices only what it has sent itself, after a quarter of
    /// an hour.
    private func watchForSilence() {
        timer = transport.loop.schedule(afterMilliseconds: options.silenceMilliseconds) { [unowned self] in
            timer = nil
            guard case .open(let connection) = state else { return }
            // Who doesn't read can't hear.
            if hasHeard || !isReceiving {
                (hasHeard, isPinged) = (false, false)
            } else if isPinged {
                return finish(
                    .failed(
                        .unavailable(
                            "\(address.string): nothing was heard for \(2 * options.silenceMilliseconds) ms")))
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
        case .ping(let payload): sendRaw(connection.pong(payload))
        case .pong: break
        case .close(let code, let reason):
            sendRaw(connection.close(code))
            finish(.byPeer(code, reason: reason))
        }
    }

    private func sendNow(_ payload: [UInt8], isString: Bool) {
        switch state {
        case .starting, .upgrading:
            // Counted until it is a frame.
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
        // Who doesn't read can't see the answer.
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
