import HearthModel
import HearthNetwork
import HearthWebSocket

/// A session's WebSocket. `@unchecked Sendable`: belongs to the loop of its channel.
final class RealtimeSocket: RealtimeCarrier, @unchecked Sendable {
    private let channel: WebSocketChannel
    private var joiner = RealtimeFrameJoiner()
    private var session: RealtimeSession! = nil
    private var sender: RealtimeSender! = nil
    /// Of the large message that is being sent.
    private var framer = RealtimePieceFramer()

    var loop: EventLoop { channel.loop }
    var queuedBytes: Int { channel.queuedBytes + sender.outbox.memoryBytes }
    var hasLarge: Bool { sender.hasLarge }
    var peer: RealtimePeer { RealtimePeer(address: channel.remoteAddress, connection: channel.connectionNumber) }

    /// Answers `GET /.ws` with an open socket, or with an error.
    /// - Parameter formerSession: the session of the same client's last connection. Its disconnect writes are made
    ///   first.
    static func begin(
        _ exchange: HTTPExchange, _ namespace: RealtimeNamespace, _ service: RealtimeService, formerSession: String?
    ) {
        let head = exchange.head
        let host = head.authority
        let authorization = head.firstValue("authorization")
        var options = WebSocketOptions()
        options.messageBytesMax = Limits.realtimeMessageBytesMax
        options.highWaterBytes = Limits.realtimeSocketHighWaterBytes
        guard let channel = exchange.upgradeToWebSocket(options) else { return }
        let socket = RealtimeSocket(channel, service)
        let session = RealtimeSession(socket, host: host, namespace, service)
        socket.session = session
        guard service.connections.admit(session, id: session.id, for: session.requester, rank: .bare) else {
            session.carrierEnded()
            return channel.close(.tryAgainLater, reason: RealtimeConnections.tooMany.message)
        }
        if let former = formerSession.flatMap({ namespace.users.session($0) }) {
            session.hold()
            former.replace { session.loop.execute { session.release() } }
        }
        if let authorization { session.authenticate(header: authorization) }
        socket.attach()
    }

    private init(_ channel: WebSocketChannel, _ service: RealtimeService) {
        self.channel = channel
        let requester = RealtimeIdentity.nobody.requester(at: peer.address, connection: peer.connection)
        sender = RealtimeSender(self, .messages, for: requester, service)
        sender.outbox.onLost = { [weak self] in self?.session.lostPushes() }
    }

    /// The channel's closures refer to the socket until the channel ends.
    private func attach() {
        channel.onClose = { _ in
            self.sender.close()
            self.session.carrierEnded()
        }
        channel.onWritable = {
            self.sender.becameWritable()
            self.session.becameWritable()
        }
        channel.onText = { self.receive($0) }
    }

    private func receive(_ string: [UInt8]) {
        do throws(RealtimeFault) {
            let received = try joiner.receive(string)
            session.hold(pieceBytes: joiner.heldBytes)
            switch received {
            case .message(let message): session.receive(message)
            case .tooLarge(let request): session.refuseTooLarge(request)
            case nil: break
            }
        } catch {
            end(error)
        }
    }

    func send(_ message: [UInt8]) { sender.send(message) }
    func send(_ message: LargeMessage) { sender.send(message) }
    func send(_ push: RealtimePush, tag: Int64?) -> Bool { sender.send(push, tag: tag) }

    func belongs(to requester: Requester) { sender.belongs(to: requester) }

    func pauseReading() { channel.pauseReading() }
    func resumeReading() { channel.resumeReading() }

    func end(_ fault: RealtimeFault) {
        let code: WebSocketCloseCode =
            switch fault.kind {
            case .malformed: .policyViolation
            case .tooLarge: .messageTooBig
            case .busy: .tryAgainLater
            }
        channel.close(code, reason: fault.reason)
    }
}

extension RealtimeSocket: RealtimeOutput {
    func write(_ message: [UInt8]) -> Bool {
        var hasCapacity = false
        for frame in RealtimeFrameSplitter.frames(of: message) { hasCapacity = channel.send(string: frame) }
        return hasCapacity
    }

    func write(_ push: RealtimePush, tag: Int64?) -> Bool {
        if tag != nil { return write(push.message(tag: tag)) }
        var hasCapacity = false
        for frame in push.frames { hasCapacity = channel.send(frame) }
        return hasCapacity
    }

    /// The number of frames comes first; head and tail have one each.
    func begin(_ message: LargeMessage) -> Bool {
        framer = RealtimePieceFramer()
        channel.send(string: Array(String(message.body.frameCount + 2).utf8))
        return channel.send(string: message.head)
    }

    func write(piece: [UInt8]) -> Bool {
        var hasCapacity = true
        for frame in framer.take(piece) { hasCapacity = channel.send(string: frame) }
        return hasCapacity
    }

    func end(_ message: LargeMessage) -> Bool {
        channel.send(string: framer.finish())
        return channel.send(string: message.tail)
    }

    func sendingFailed() { end(.busy) }

    func hasSentSome() { session.becameWritable() }
}
