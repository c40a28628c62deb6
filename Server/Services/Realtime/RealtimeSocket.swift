import HearthModel
import HearthNetwork
import HearthTree
import HearthWebSocket

/// A session's WebSocket. `@unchecked Sendable`: belongs to the loop of its channel.
final class RealtimeSocket: RealtimeCarrier, @unchecked Sendable {
    private let channel: WebSocketChannel
    private var joiner = RealtimeFrameJoiner()
    private var session: RealtimeSession! = nil

    var loop: EventLoop { channel.loop }
    var queuedBytes: Int { channel.queuedBytes }
    var peer: RealtimePeer { RealtimePeer(address: channel.remoteAddress, connection: channel.connectionNumber) }

    /// Answers `GET /.ws` with an open socket, or says why not.
    /// - Parameter formerSession: that of the same client's last connection: what it wanted done at its end is done first.
    static func begin(
        _ exchange: HTTPExchange, _ namespace: RealtimeNamespace, _ service: RealtimeService, formerSession: String?
    ) {
        let head = exchange.head
        let host = head.authority
        let authorization = head.firstValue("authorization")
        var options = WebSocketOptions()
        options.messageBytesMax = Limits.realtimeMessageBytesMax
        guard let channel = exchange.upgradeToWebSocket(options) else { return }
        let socket = RealtimeSocket(channel)
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

    private init(_ channel: WebSocketChannel) {
        self.channel = channel
    }

    /// The channel's closures hold the socket until the channel ends.
    private func attach() {
        channel.onClose = { _ in self.session.carrierEnded() }
        channel.onWritable = { self.session.becameWritable() }
        channel.onText = { self.receive($0) }
    }

    private func receive(_ text: [UInt8]) {
        do throws(RealtimeFault) {
            let message = try joiner.receive(text)
            session.hold(pieceBytes: joiner.heldBytes)
            if let message { session.receive(message) }
        } catch {
            end(error)
        }
    }

    func send(_ message: [UInt8]) {
        for frame in RealtimeFrameSplitter.frames(of: message) { channel.send(text: frame) }
    }

    func send(shared push: RealtimePush) {
        for frame in push.frames { channel.send(frame) }
    }

    func belongs(to requester: Requester) {}

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

/// `/.ws`: where clients of the Realtime Database open their sockets.
struct RealtimeSocketHTTP: HTTPExtension {
    let service: RealtimeService

    func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        guard head.path == "/.ws" else { return false }
        do throws(Status) {
            let parameters = try RealtimeParameters(head.query)
            let name = RealtimeAddress.namespace(head, named: parameters.namespace, standard: service.standardName)
            let namespace = try service.namespace(name)
            RealtimeSocket.begin(exchange, namespace, service, formerSession: parameters.formerSession)
        } catch {
            exchange.respond(
                status: error.code.httpStatus, headers: [HTTPHeader("content-type", "text/plain; charset=utf-8")],
                body: Array((error.message + "\n").utf8))
        }
        return true
    }
}
