import Glibc
import HearthModel
import HearthNetwork
import HearthTestCertificates
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import HearthWebSocket
import Synchronization
import Testing

private typealias Event = WebSocketClient.Event

/// A client whose events can be awaited.
private final class Recorded {
    let client: WebSocketClient
    private var events: AsyncStream<Event>.Iterator

    init(
        _ transport: Transport, port: Int, path: String = "/echo", security: TransportSecurity = .plaintext,
        headers: [HTTPField] = [], _ change: (inout WebSocketClient.Options) -> Void = { _ in }
    ) {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
        var options = WebSocketClient.Options()
        change(&options)
        let host = security == .plaintext ? "127.0.0.1" : "localhost"
        client = WebSocketClient(
            transport: transport, address: ServerAddress(host: host, port: port, security: security, proxy: .none),
            path: path, headers: headers, options: options
        ) { event in
            continuation.yield(event)
            if case .closed = event { continuation.finish() }
        }
        events = stream.makeAsyncIterator()
    }

    func send(_ string: String) { client.send(string: Array(string.utf8)) }

    /// The next text message; nil when the connection ends first.
    func string() async -> String? {
        while let event = await events.next() {
            if case .string(let string) = event { return String(decoding: string, as: UTF8.self) }
            if case .closed(let end) = event {
                Issue.record("closed: \(end)")
                return nil
            }
        }
        return nil
    }

    func expect(_ string: String, sourceLocation: SourceLocation = #_sourceLocation) async {
        let received = await self.string()
        #expect(received == string, sourceLocation: sourceLocation)
    }

    func expectEnd(_ expected: WebSocketClient.End, sourceLocation: SourceLocation = #_sourceLocation) async {
        let end = await end()
        #expect(end == expected, sourceLocation: sourceLocation)
    }

    /// The failure of a client that must fail.
    func failure(sourceLocation: SourceLocation = #_sourceLocation) async -> Status? {
        let end = await end()
        guard case .failed(let status) = end else {
            Issue.record("no failure but \(String(describing: end))", sourceLocation: sourceLocation)
            return nil
        }
        return status
    }

    func end() async -> WebSocketClient.End? {
        while let event = await events.next() {
            if case .closed(let end) = event { return end }
        }
        return nil
    }
}

private func serve(
    _ options: WebSocketOptions = WebSocketOptions(), ended: Box<WebSocketEnd> = Box()
) -> @Sendable (HTTPExchange) -> Void {
    { exchange in
        switch exchange.head.path {
        case "/echo":
            guard let channel = exchange.upgradeToWebSocket(options) else { return }
            channel.onText = { [unowned channel] in channel.send(string: $0) }
            channel.onBinary = { [unowned channel] in channel.send(binary: $0) }
            channel.onClose = { ended.set($0) }
        case "/head":
            guard let channel = exchange.upgradeToWebSocket(options) else { return }
            let head = exchange.head
            let string = "\(head.target) \(head.authority) \(head.firstValue("x-test") ?? "")"
            channel.send(string: Array(string.utf8))
            channel.onText = { _ in }
        case "/close": exchange.upgradeToWebSocket(options)?.close(.tryAgainLater, reason: "later")
        case "/abort": exchange.upgradeToWebSocket(options)?.abort()
        case "/elsewhere":
            exchange.respond(status: 307, headers: [HTTPHeader("location", "/echo")], body: [])
        default: exchange.respond(status: 404, headers: [], body: [])
        }
    }
}

@Suite(.timeLimit(.minutes(Patience.minutes))) struct WebSocketClientTests {
    @Test(arguments: [false, true], [nil, 100]) func echoes(_ isSecure: Bool, _ threshold: Int?) async throws {
        let tls = isSecure ? Certificates.shared.server.server : nil
        let http = serve(WebSocketOptions(compressionThresholdBytes: threshold))
        try await withServer(tls: tls, http: http) { server, transport in
            let peer = Recorded(
                transport, port: server.port, security: isSecure ? Certificates.shared.trusting : .plaintext
            ) { $0.compressionThresholdBytes = threshold }
            // The first messages are sent before there is a connection.
            let strings = ["", "a", "ä€😀", String(repeating: "hearth ", count: 50_000)] + (0..<500).map(String.init)
            for string in strings { peer.send(string) }
            for string in strings { await peer.expect(string) }
            #expect(peer.client.queuedBytes == 0)
            #expect((server.statistics.bytesReceived < 100_000) == (threshold != nil))
            peer.client.close()
        }
    }

    @Test func requestsCarryTheOptions() async throws {
        try await withServer(http: serve()) { server, transport in
            let peer = Recorded(
                transport, port: server.port, path: "/head?ns=a%20b&v=5", headers: [HTTPField("x-test", "yes")])
            await peer.expect("/head?ns=a%20b&v=5 127.0.0.1:\(server.port) yes")
            peer.client.close()
            for path in ["", "echo", "/a b", "/a\r\nx: y", "/ä"] {
                let status = await Recorded(transport, port: server.port, path: path).failure()
                #expect(status?.code == .invalidArgument)
            }
            let smuggler = Recorded(transport, port: server.port, headers: [HTTPField("x", "a\r\nb: c")])
            let status = await smuggler.failure()
            #expect(status?.code == .invalidArgument)
        }
    }

    @Test func theServersEndIsReported() async throws {
        try await withServer(http: serve()) { server, transport in
            let closed = Recorded(transport, port: server.port, path: "/close")
            await closed.expectEnd(.byPeer(.tryAgainLater, reason: "later"))
            for path in ["/abort"] {
                let status = await Recorded(transport, port: server.port, path: path).failure()
                #expect(status?.code == .unavailable)
            }
            for (path, expected) in [("/nothing", 404), ("/elsewhere", 307)] {
                guard case .refused(let status, _) = await Recorded(transport, port: server.port, path: path).end()
                else {
                    Issue.record("not refused: \(path)")
                    continue
                }
                #expect(status == expected)
            }
            await expectNoSockets(transport)
        }
    }

    @Test func theCloseFrameFollowsQueuedMessages() async throws {
        let ended = Box<WebSocketEnd>()
        try await withServer(http: serve(ended: ended)) { server, transport in
            let peer = Recorded(transport, port: server.port)
            peer.send("a")
            await peer.expect("a")
            for _ in 0..<100 { peer.send(String(repeating: "x", count: 10_000)) }
            peer.client.close(.goingAway, reason: "bye")
            peer.send("too late")
            let end = try await ended.value()
            #expect(end == .closedByPeer(.goingAway, reason: "bye"))
            #expect(server.statistics.webSocketMessagesReceived == 101)
            await expectNoSockets(transport)
        }
    }

    @Test func aConnectionIsEndedWithItsTransport() async throws {
        let server = try makeServer(http: serve())
        let transport = try Transport()
        let peer = Recorded(transport, port: server.port)
        peer.send("a")
        await peer.expect("a")
        try await blocking { transport.shutDown() }
        let status = await peer.failure()
        #expect(status?.code == .cancelled)
        _ = await Recorded(transport, port: server.port).failure()
        try await stop(server)
    }

    @Test func aPausingClientHoldsTheServerBack() async throws {
        let isFull = Box<Bool>()
        let http: @Sendable (HTTPExchange) -> Void = { exchange in
            guard let channel = exchange.upgradeToWebSocket() else { return }
            nonisolated(unsafe) var sent = 0
            @Sendable func fill() {
                while sent < 1_000 {
                    sent += 1
                    if !channel.send(string: [UInt8](repeating: 65, count: 50_000)) { return isFull.set(true) }
                }
                channel.close()
            }
            channel.onText = { _ in fill() }
            channel.onWritable = fill
        }
        try await withServer(http: http) { server, transport in
            let peer = Recorded(transport, port: server.port)
            peer.client.setReceiving(false)
            peer.send("go")
            _ = try await isFull.value()
            peer.client.setReceiving(true)
            var count = 0
            for _ in 0..<1_000 where await peer.string()?.utf8.count == 50_000 { count += 1 }
            #expect(count == 1_000)
            await peer.expectEnd(.byPeer(.normal, reason: ""))
        }
    }

    /// Incorrect servers: their responses, and the client's errors.
    @Test(arguments: [
        ("SSH-2.0-x\r\n\r\n", "isn't HTTP"), ("HTTP/1.1 101 x\r\n\r\n", "switched to something else"),
        ("HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", "doesn't belong"),
        (
            "HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: AAAA\r\n\r\n",
            "doesn't belong"
        ),
        ("HTTP/1.1 101 x\r\nnonsense\r\n\r\n", "malformed"), ("", "without a response"),
        (String(repeating: "HTTP/1.1 100 x\r\n\r\n", count: 3), "without a response"),
        ("HTTP/1.1 101 x\r\na: " + String(repeating: "x", count: 300_000), "larger than"),
    ])
    func refusesBadHandshakes(_ answer: String, _ words: String) async throws {
        let server = try TestListener { connection in
            _ = TestSocket.receive(connection)
            _ = TestSocket.sendAll(connection, Array(answer.utf8))
            // Otherwise a reset could overtake the response.
            shutdown(connection, Int32(SHUT_WR))
            while !TestSocket.receive(connection).isEmpty {}
        }
        let transport = try Transport()
        let status = await Recorded(transport, port: server.port).failure()
        #expect(status?.message.contains(words) == true, "\(status?.message ?? "")")
        try await blocking { transport.shutDown() }
    }

    @Test func aSilentServerIsGivenUp() async throws {
        let server = try TestListener { connection in while !TestSocket.receive(connection).isEmpty {} }
        let transport = try Transport()
        let peer = Recorded(transport, port: server.port) { $0.handshakeTimeoutMilliseconds = 50 }
        let status = await peer.failure()
        #expect(status?.message.contains("within 50 ms") == true)
        try await blocking { transport.shutDown() }
    }

    /// A network that drops all packets reports no error.
    @Test func aSilentConnectionIsPingedAndGivenUp() async throws {
        let pings = Mutex(0)
        let server = try TestListener { connection in
            guard let head = answerHead(to: TestSocket.receive(connection)) else { return }
            _ = TestSocket.sendAll(connection, Array("HTTP/1.1 101 Switching Protocols\r\n\(head)\r\n".utf8))
            let codec = WebSocketConnection(role: .server)
            while case let bytes = TestSocket.receive(connection), !bytes.isEmpty {
                let events = (try? codec.receive(bytes)) ?? []
                pings.withLock { $0 += events.count { $0 == .ping([]) } }
            }
        }
        let transport = try Transport()
        let peer = Recorded(transport, port: server.port) { $0.silenceMilliseconds = 50 }
        let status = await peer.failure()
        #expect(status?.message.contains("nothing was received") == true)
        try await blocking { transport.shutDown() }
        #expect(pings.withLock { $0 } == 1)
    }

    /// The head and the first frames, in the smallest pieces, after an interim response.
    @Test func anAnswerMayComeByteByByte() async throws {
        let server = try TestListener { connection in
            guard let head = answerHead(to: TestSocket.receive(connection)) else { return }
            let string = "HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\(head)\r\n"
            let codec = WebSocketConnection(role: .server)
            for byte in Array(string.utf8) + codec.send(string: [65]) + codec.ping([1]) + codec.send(string: [66]) {
                _ = TestSocket.sendAll(connection, [byte])
            }
            // The masked pong.
            var received: [UInt8] = []
            while received.count < 7, case let more = TestSocket.receive(connection), !more.isEmpty { received += more }
            let pong = (try? codec.receive(received)) == [.pong([1])]
            _ = TestSocket.sendAll(connection, codec.send(string: [pong ? 89 : 78]) + codec.close(.normal))
            while !TestSocket.receive(connection).isEmpty {}
        }
        let transport = try Transport()
        let peer = Recorded(transport, port: server.port)
        for expected in ["A", "B", "Y"] { await peer.expect(expected) }
        await peer.expectEnd(.byPeer(.normal, reason: ""))
        try await blocking { transport.shutDown() }
    }

    @Test func violationsOfTheServerEndIt() async throws {
        let http: @Sendable (HTTPExchange) -> Void = { exchange in
            guard let channel = exchange.upgradeToWebSocket() else { return }
            channel.onText = { _ in }
            channel.send(string: [0xFF])
        }
        try await withServer(http: http) { server, transport in
            let status = await Recorded(transport, port: server.port).failure()
            #expect(status?.message.contains("UTF-8") == true)
            let small = Recorded(transport, port: server.port) { $0.messageBytesMax = 0 }
            let tooLarge = await small.failure()
            #expect(tooLarge?.message.contains("larger than 0 bytes") == true)
        }
    }
}

/// Connections close in the background.
/// The fields of the answer to a handshake.
private func answerHead(to request: [UInt8]) -> String? {
    let key = String(decoding: request, as: UTF8.self).split(separator: "\r\n")
        .first { $0.hasPrefix("sec-websocket-key: ") }?.dropFirst(19)
    guard let key,
        let handshake = try? WebSocketUpgradeRequest(
            method: "GET", isHTTP1_1: true,
            values: { name in
                switch name {
                case "upgrade": ["websocket"]
                case "connection": ["upgrade"]
                case "sec-websocket-version": ["13"]
                case "sec-websocket-key": [String(key)]
                default: []
                }
            })
    else { return nil }
    return try? handshake.answer(takesOverContext: nil).fields.map { "\($0.name):  \($0.value) \r\n" }.joined()
}

private func expectNoSockets(_ transport: Transport) async {
    #expect(await eventually { transport.statistics.sockets == 0 })
}
