import Foundation
import HearthModel
import HearthNetwork
import HearthTLS
import HearthTestCertificates
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import Testing

private let certificates = Certificates.shared
private let trusting = Certificates.shared.trusting

private func address(
    _ port: Int, host: String = "localhost", _ security: TransportSecurity = trusting,
    connectTimeoutMilliseconds: Int = 20_000
) -> ServerAddress {
    ServerAddress(
        host: host, port: port, security: security, proxy: .none, connectTimeoutMilliseconds: connectTimeoutMilliseconds
    )
}

/// The result of a stream that echoes one message.
private func echo(_ transport: Transport, _ address: ServerAddress) async -> StreamRecorder.Snapshot {
    let recorder = StreamRecorder()
    let stream = GRPCChannel(transport: transport, address: address).open("/p.S/Bidi", recorder)
    stream.send([7])
    stream.finish()
    return await recorder.end()
}

private func expectRefused(
    _ end: StreamRecorder.Snapshot, _ words: String..., code: Status.Code = .unavailable,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(end.status?.code == code, sourceLocation: sourceLocation)
    #expect(end.openedCount == 0, sourceLocation: sourceLocation)
    let message = end.status?.message.lowercased() ?? ""
    for word in words { #expect(message.contains(word.lowercased()), sourceLocation: sourceLocation) }
}

@Suite(.timeLimit(.minutes(Patience.minutes))) struct TLSTests {
    @Test func callsGoThroughTLS() async throws {
        try await withServer(tls: certificates.server.server) { server, transport in
            let channel = channel(transport, port: server.port, security: trusting)
            for count in [0, 100, 3_000_000] {
                try await expectEqual(channel.unary("/p.S/Unary", message: bytes(count)), bytes(count))
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask {
                        try await expectEqual(channel.unary("/p.S/Unary", message: bytes(number)), bytes(number))
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func tenThousandEchoesOneAtATime() async throws {
        try await withServer(tls: certificates.server.server) { server, transport in
            let channel = channel(transport, port: server.port, security: trusting)
            let recorder = StreamRecorder()
            nonisolated(unsafe) var stream: GRPCStream?
            let opened = channel.openStream("/p.S/Bidi") { event in
                recorder.take(event)
                guard case .message(let message) = event, let stream else { return }
                let number = Int(String(decoding: message, as: UTF8.self)) ?? -1
                if number < 10_000 { stream.send(Array("\(number + 1)".utf8)) } else { stream.finish() }
            }
            stream = opened
            await recorder.wait { $0.openedCount == 1 }
            opened.send(Array("1".utf8))
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages == (1...10_000).map { Array("\($0)".utf8) })
            #expect(transport.statistics.sockets == 0)
            stream = nil
        }
    }

    @Test func tenThousandAtOnceKeepTheirOrder() async throws {
        try await withServer(tls: certificates.server.server) { server, transport in
            let channel = channel(transport, port: server.port, security: trusting)
            let recorder = StreamRecorder()
            let stream = channel.open("/p.S/Bidi", recorder)
            let messages = (0..<10_000).map { bytes($0 % 3_000) }
            for message in messages { stream.send(message) }
            stream.finish()
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages == messages)
        }
    }

    @Test func bigMessagesBothWays() async throws {
        try await withServer(tls: certificates.server.server) { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port, security: trusting).open("/p.S/Bidi", recorder)
            let messages = [bytes(3 << 20), [], bytes(5 << 20), bytes(1)]
            for message in messages { stream.send(message) }
            stream.finish()
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages == messages)
        }
    }

    /// Data that TLS has decrypted, or could decrypt, waits for the consumer.
    @Test func aPausedConsumerLosesNothing() async throws {
        try await withServer(tls: certificates.server.server, grpc: flood(400)) { server, transport in
            let recorder = StreamRecorder()
            let pauses = [3, 50, 200]
            let channel = channel(transport, port: server.port, security: trusting)
            let stream = channel.openPausing(recorder, at: pauses)
            for count in pauses {
                await recorder.wait { $0.messages.count >= count }
                #expect(await becomesIdle(transport, port: server.port, security: trusting))
                #expect(recorder.now.messages.count == count)
                stream.resumeReceiving()
            }
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages.map { $0.first } == (1...400).map { UInt8(truncatingIfNeeded: $0) })
        }
    }

    @Test func anIdleStreamCostsNothing() async throws {
        try await withServer(tls: certificates.server.server) { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port, security: trusting).open("/p.S/Bidi", recorder)
            stream.send([1])
            await recorder.wait { $0.messages.count == 1 }
            #expect(await becomesIdle(transport, port: server.port, security: trusting))
            stream.cancel()
        }
    }

    @Test func requestsAndRawConnectionsToo() async throws {
        let http: @Sendable (HTTPExchange) -> Void = { $0.respond(status: 200, headers: [], body: bytes(200_000)) }
        try await withServer(tls: certificates.server.server, http: http) { server, transport in
            var request = HTTPRequest(url: "https://localhost:\(server.port)/x")
            request.proxy = .none
            request.tls.authoritiesPath = certificates.authority.certificatePath
            let response = try await HTTPClient(transport: transport).response(to: request, bodyBytesMax: 1 << 20)
            #expect(response.status == 200)
            #expect(response.body == bytes(200_000))
            let string = try await rawAnswer(transport, address(server.port))
            #expect(string.hasPrefix("HTTP/1.1 200 "))
            #expect(string.utf8.count > 200_000)
        }
    }

    // MARK: The handshake

    @Test func theServerReceivesHTTP2AndTheName() async throws {
        try await withServer { server, transport in
            let gateway = try TLSGateway(to: server.port)
            #expect(await echo(transport, address(gateway.port)).messages == [[7]])
            // An address is verified, and not sent by SNI.
            #expect(await echo(transport, address(gateway.port, host: "127.0.0.1")).messages == [[7]])
            let notes = gateway.notes
            #expect(notes.agreed == ["h2", "h2"])
            #expect(notes.serverNames == ["localhost", ""])
        }
    }

    @Test func aConnectionEndsInOrder() async throws {
        try await withServer { server, transport in
            let gateway = try TLSGateway(to: server.port)
            let recorder = StreamRecorder()
            let stream = GRPCChannel(transport: transport, address: address(gateway.port)).open("/p.S/Bidi", recorder)
            stream.send([1])
            await recorder.wait { $0.messages.count == 1 }
            stream.cancel()
            #expect(await eventually { gateway.notes.orderlyEnds > 0 })
        }
    }

    @Test(arguments: [TLSGateway.Agreement.http1, .nothing])
    func withoutHTTP2ThereIsNoStream(_ agreement: TLSGateway.Agreement) async throws {
        try await withServer { server, transport in
            let gateway = try TLSGateway(to: server.port, agreement: agreement)
            expectRefused(await echo(transport, address(gateway.port)))
            if agreement == .nothing {
                expectRefused(await echo(transport, address(gateway.port)), "ALPN", "no protocol", "h2")
            }
        }
    }

    @Test func aCutConnectionIsNotComplete() async throws {
        let http: @Sendable (HTTPExchange) -> Void = { $0.respond(status: 200, headers: [], body: bytes(200_000)) }
        try await withServer(http: http) { server, transport in
            let gateway = try TLSGateway(to: server.port, agreement: .nothing, cutsAfterBytes: 10_000)
            let string = try await rawAnswer(transport, address(gateway.port))
            #expect(string.contains("broke"))
        }
    }

    @Test func certificatesAreChecked() async throws {
        let known = certificates.authority.certificatePath
        let wrong: [(files: Certificates.Files, host: String, authority: String?, words: String)] = [
            (certificates.otherName, "localhost", known, "hostname mismatch"),
            (certificates.otherName, "127.0.0.1", known, "ip address mismatch"),
            (certificates.server, "localhost", certificates.stranger.certificatePath, "unable to get local issuer"),
            (certificates.server, "localhost", nil, "unable to get local issuer"),
            (certificates.expired, "localhost", known, "certificate has expired"),
            (certificates.authority, "localhost", certificates.stranger.certificatePath, "self-signed certificate"),
        ]
        for (files, host, authority, words) in wrong {
            try await withServer(tls: files.server) { server, transport in
                let checked = address(server.port, host: host, .tls(TLSOptions(authoritiesPath: authority)))
                expectRefused(await echo(transport, checked), "certificate is refused", words, host)
                let channel = GRPCChannel(transport: transport, address: checked)
                #expect(await failure { try await channel.unary("/p.S/Unary", message: [1]) }?.code == .unavailable)
                let careless = address(server.port, host: host, .tls(TLSOptions(trustsAnyCertificate: true)))
                #expect(await echo(transport, careless).messages == [[7]])
                try await expectEqual(
                    GRPCChannel(transport: transport, address: careless).unary("/p.S/Unary", message: [1]), [1])
                #expect(await echo(transport, checked).status?.code == .unavailable)
            }
        }
    }

    @Test func aMissingFileIsAFailedPrecondition() async throws {
        try await withServer(tls: certificates.server.server) { server, transport in
            let options = [
                TLSOptions(authoritiesPath: "/nowhere/x.pem"),
                TLSOptions(
                    authoritiesPath: certificates.authority.certificatePath, clientCertificatePath: "/nowhere/x.pem"),
            ]
            for options in options {
                expectRefused(
                    await echo(transport, address(server.port, .tls(options))), "/nowhere/x.pem",
                    code: .failedPrecondition)
            }
        }
    }

    @Test func aServerWithoutTLSIsNamed() async throws {
        try await withServer { server, transport in
            // Hearth detects TLS, and answers with an alert.
            expectRefused(await echo(transport, address(server.port)), "TLS handshake failed")
        }
        for (answer, words) in [
            ("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "does not speak TLS"),
            ("", "closed the connection in the TLS handshake"),
        ] {
            let server = try FakeServer(answer: Array(answer.utf8))
            let transport = try Transport()
            expectRefused(await echo(transport, address(server.port)), words)
            try await blocking { transport.shutDown() }
        }
    }

    /// A server that reads the first handshake message and sends nothing, or sends only half of its answer.
    @Test func aHandshakeHasItsTime() async throws {
        let transport = try Transport()
        for answer in [[], [22, 3, 3, 0, 100, 2, 0]] as [[UInt8]] {
            let server = try TestListener { connection in
                _ = TestSocket.receive(connection)
                _ = TestSocket.sendAll(connection, answer)
                while !TestSocket.receive(connection).isEmpty {}
            }
            let clock = ContinuousClock()
            let time = await clock.measure {
                let end = await echo(transport, address(server.port, connectTimeoutMilliseconds: 300))
                expectRefused(end, "300 ms", "handshake")
            }
            #expect(time >= .milliseconds(290))
            #expect(transport.statistics.sockets == 0)
        }
        #expect(transport.statistics.ticks < 200)
        try await blocking { transport.shutDown() }
    }

    // MARK: Certificates of clients

    @Test func clientsShowTheirCertificate() async throws {
        try await withServer { server, transport in
            let gateway = try TLSGateway(to: server.port, clientAuthorityPath: certificates.authority.certificatePath)
            let options = [
                TLSOptions(
                    authoritiesPath: certificates.authority.certificatePath,
                    clientCertificatePath: certificates.client.certificatePath,
                    clientKeyPath: certificates.client.keyPath),
                TLSOptions(
                    authoritiesPath: certificates.authority.certificatePath,
                    clientCertificatePath: certificates.client.certificatePath,
                    clientKeyPath: certificates.encryptedClientKeyPath, clientKeyPassword: "secret"),
            ]
            for options in options {
                let address = address(gateway.port, .tls(options))
                #expect(await echo(transport, address).messages == [[7]])
                try await expectEqual(
                    GRPCChannel(transport: transport, address: address).unary("/p.S/Unary", message: [1]), [1])
            }
            #expect(gateway.notes.clients == Array(repeating: "/CN=a client", count: 4))
        }
    }

    @Test func clientsWithoutCertificateGetAnError() async throws {
        try await withServer { server, transport in
            let gateway = try TLSGateway(to: server.port, clientAuthorityPath: certificates.authority.certificatePath)
            // With TLS 1.3 the server's refusal comes after the client's handshake: the stream may have opened.
            let end = await echo(transport, address(gateway.port))
            #expect(end.status?.code == .unavailable)
            #expect(end.status?.message.contains("certificate required") == true)
            let channel = GRPCChannel(transport: transport, address: address(gateway.port))
            #expect(await failure { try await channel.unary("/p.S/Unary", message: [1]) }?.code == .unavailable)
        }
    }

    @Test func keysMustFit() async throws {
        try await withServer(tls: certificates.server.server) { server, transport in
            for (key, password) in [
                (certificates.stranger.keyPath, nil), (certificates.encryptedClientKeyPath, "wrong"),
                (certificates.encryptedClientKeyPath, nil),
            ] as [(String, String?)] {
                let options = TLSOptions(
                    authoritiesPath: certificates.authority.certificatePath,
                    clientCertificatePath: certificates.client.certificatePath, clientKeyPath: key,
                    clientKeyPassword: password)
                expectRefused(
                    await echo(transport, address(server.port, .tls(options))), key, code: .failedPrecondition)
            }
        }
    }
}

/// A server's response to a request over a raw connection, up to the end.
func rawAnswer(_ transport: Transport, _ address: ServerAddress) async throws -> String {
    let answer = Box<String>()
    let received = ByteBox()
    let connection = RawConnection(transport: transport, address: address) { event in
        switch event {
        case .opened, .drained: break
        case .received(let bytes): received.append(bytes)
        case .closed(let status): answer.set(status?.description ?? received.string)
        }
    }
    connection.send(Array("GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".utf8))
    return try await answer.value()
}
