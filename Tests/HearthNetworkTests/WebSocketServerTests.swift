import HearthModel
import HearthNetwork
import HearthTestSupport
import HearthWebSocket
import Synchronization
import Testing

/// Echoes text messages, and records the end.
func echo(
    _ options: WebSocketOptions = WebSocketOptions(), ended: Box<WebSocketEnd> = Box()
) -> @Sendable (HTTPExchange) -> Void {
    { exchange in
        guard let channel = exchange.upgradeToWebSocket(options) else { return }
        channel.onText = { [unowned channel] in channel.send(string: $0) }
        channel.onClose = { ended.set($0) }
    }
}

@Suite struct WebSocketServerTests {
    @Test func echoesOverPlainSockets() async throws {
        let ended = Box<WebSocketEnd>()
        try await withServer(http: echo(ended: ended)) { server in
            let peer = try await WebSocketPeer(server)
            for string in ["a", "", "ä€😀", String(repeating: "x", count: 200_000)] {
                peer.send(string: string)
                #expect(try await peer.nextText() == string)
            }
            peer.send(peer.codec.ping([1, 2]))
            #expect(try await peer.next() == .pong([1, 2]))
            #expect(server.statistics.webSocketsOpen == 1)
            peer.send(peer.codec.close(.goingAway, reason: "bye"))
            #expect(try await peer.closeCode() == .goingAway)
            #expect(try await ended.value() == .closedByPeer(.goingAway, reason: "bye"))
            #expect(server.statistics.webSocketsOpen == 0 && server.statistics.webSocketsOpened == 1)
            #expect(server.statistics.webSocketMessagesReceived == 4)
            #expect(server.statistics.webSocketMessagesSent == 4)
        }
    }

    @Test func messagesMayComeWithTheRequestAndInPieces() async throws {
        try await withServer(http: echo()) { server in
            let client = WebSocketConnection(role: .client)
            let sent = (0..<100).flatMap { client.send(string: Array("message \($0)".utf8)) }
            let peer = try await WebSocketPeer(server, behind: Array(sent[..<77]))
            for byte in sent[77...] { peer.send([byte]) }
            for number in 0..<100 { #expect(try await peer.nextText() == "message \(number)") }
        }
    }

    @Test func anUpgradeMayComeLaterAndAfterAnotherRequest() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            guard exchange.head.path == "/echo" else { return exchange.respond(status: 200, headers: [], body: [65]) }
            exchange.loop.schedule(afterMilliseconds: 20) { echo()(exchange) }
        }
        try await withServer(http: handler) { server in
            let client = WebSocketConnection(role: .client)
            let connection = try RawConnection(port: server.port)
            let request = WebSocketPeer.request.joined(separator: "\r\n") + "\r\n\r\n"
            connection.send(Array("GET /a HTTP/1.1\r\nhost: h\r\n\r\n\(request)".utf8) + client.send(string: [66]))
            #expect(try await connection.readAnswer().string == "A")
            #expect(try await connection.readAnswer(hasBody: false).status == 101)
            #expect(try await connection.read(3) == [0x81, 1, 66])
        }
    }

    @Test func compressesWhenBothAgree() async throws {
        let string = String(repeating: "hearth ", count: 10_000)
        try await withServer(http: echo(WebSocketOptions(compressionThresholdBytes: 1_000))) { server in
            for compresses in [true, false] {
                let before = server.statistics.bytesSent
                let peer = try await WebSocketPeer(server, compresses: compresses)
                #expect((peer.codec.deflate != nil) == compresses)
                for _ in 0..<3 {
                    peer.send(string: string)
                    #expect(try await peer.nextText() == string)
                }
                #expect((server.statistics.bytesSent - before < 10_000) == compresses)
            }
        }
        try await withServer(http: echo()) { server in
            let peer = try await WebSocketPeer(server, compresses: true)
            #expect(peer.codec.deflate == nil)
        }
    }

    @Test func rejectsInvalidHandshakes() async throws {
        try await withServer(http: echo()) { server in
            for (drop, status) in [("upgrade", 426), ("sec-websocket-version", 426), ("sec-websocket-key", 400)] {
                let connection = try RawConnection(port: server.port)
                let lines = WebSocketPeer.request.filter { !$0.hasPrefix(drop + ":") }
                // The connection continues as HTTP.
                for _ in 0..<2 {
                    connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
                    let answer = try await connection.readAnswer()
                    #expect(answer.status == status)
                    #expect((answer.headers["sec-websocket-version"] == "13") == (status == 426))
                }
            }
            let connection = try RawConnection(port: server.port)
            connection.send((WebSocketPeer.request + ["content-length: 1"]).joined(separator: "\r\n") + "\r\n\r\nx")
            #expect(try await connection.readAnswer().status == 400)
            let client = try await connect(server)
            #expect(try await request(client, "GET", "/echo").status == 400)
            #expect(server.statistics.webSocketsOpened == 0)
        }
    }

    @Test func aSubprotocolIsChosenWhenTheClientOffersIt() async throws {
        try await withServer(http: echo(WebSocketOptions(subprotocol: "b"))) { server in
            for (offer, chosen) in [("a, b", "b"), ("a", nil)] {
                let connection = try RawConnection(port: server.port)
                let lines = WebSocketPeer.request + ["sec-websocket-protocol: \(offer)"]
                connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
                let answer = try await connection.readAnswer(hasBody: false)
                #expect(answer.headers["sec-websocket-protocol"] == chosen)
            }
        }
    }

    @Test(arguments: [
        ([0x83, 0x80, 0, 0, 0, 0], WebSocketCloseCode.protocolError), ([0x81, 0], .protocolError),
        ([0x81, 0x81, 0, 0, 0, 0, 0xFF], .invalidPayload), ([0x82, 0x80, 0, 0, 0, 0], .unsupportedData),
        ([0x81, 0xFE, 0x03, 0xE9, 0, 0, 0, 0], .messageTooBig),
    ])
    func violationsEndTheConnectionWithTheirCode(_ input: [UInt8], _ code: WebSocketCloseCode) async throws {
        let ended = Box<WebSocketEnd>()
        try await withServer(http: echo(WebSocketOptions(messageBytesMax: 1_000), ended: ended)) { server in
            let peer = try await WebSocketPeer(server)
            peer.send(string: "before")
            peer.send(input)
            #expect(try await peer.nextText() == "before")
            #expect(try await peer.closeCode() == code)
            guard case .violation(let failure) = try await ended.value() else {
                Issue.record("ended with \(String(describing: ended.current))")
                return
            }
            #expect(failure.code == code)
        }
    }

    @Test func aLostConnectionIsReported() async throws {
        let ended = Box<WebSocketEnd>()
        try await withServer(http: echo(ended: ended)) { server in
            do { _ = try await WebSocketPeer(server) }
            #expect(try await ended.value() == .connectionLost)
        }
    }

    @Test func aHandlerClosesAndIsNotifiedOnce() async throws {
        let ends = Mutex<[WebSocketEnd]>([])
        let ended = Box<WebSocketEnd>()
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            guard let channel = exchange.upgradeToWebSocket() else { return }
            channel.onText = { [unowned channel] string in
                channel.send(string: string)
                channel.close(.policyViolation, reason: "enough")
                #expect(!channel.isOpen && !channel.send(string: string))
                #expect(ends.withLock { $0.isEmpty })
            }
            channel.onClose = { end in
                ends.withLock { $0.append(end) }
                ended.set(end)
            }
        }
        try await withServer(http: handler) { server in
            let peer = try await WebSocketPeer(server)
            peer.send(string: "a")
            peer.send(string: "b")
            #expect(try await peer.nextText() == "a")
            #expect(try await peer.next() == .close(.policyViolation, reason: "enough"))
            #expect(try await ended.value() == .closed)
            // The client's answer ends the connection.
            peer.send(peer.codec.close(.policyViolation))
            #expect(try await peer.connection.readToEnd().isEmpty)
        }
        #expect(ends.withLock { $0 } == [.closed])
    }

    @Test func aClientThatIgnoresTheCloseIsDisconnected() async throws {
        var limits = NetworkLimits()
        limits.lingerMilliseconds = 50
        let handler: @Sendable (HTTPExchange) -> Void = { $0.upgradeToWebSocket()?.close() }
        try await withServer(limits: limits, http: handler) { server in
            let peer = try await WebSocketPeer(server)
            #expect(try await peer.next() == .close(.normal, reason: ""))
            #expect(try await peer.connection.readToEnd().isEmpty)
        }
    }

    @Test func shutdownSendsGoingAway() async throws {
        let ended = Box<WebSocketEnd>()
        try await withServer(http: echo(ended: ended)) { server in
            let peer = try await WebSocketPeer(server)
            peer.send(string: "a")
            #expect(try await peer.nextText() == "a")
            async let stopped: Void = stop(server, graceSeconds: 5)
            guard case .close(.goingAway, _) = try await peer.next() else {
                Issue.record("no close")
                return
            }
            peer.send(peer.codec.close(.goingAway))
            try await stopped
            #expect(try await ended.value() == .closed)
        }
    }
}
