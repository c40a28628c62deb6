import Foundation
import HearthModel
import HearthNetwork
import HearthTransport
import Testing

/// A certificate of its own authority for localhost, made by the openssl tool when it is there.
private let certificate: TLSConfiguration? = {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
    let openssl = URL(fileURLWithPath: "/usr/bin/openssl")
    guard FileManager.default.isExecutableFile(atPath: openssl.path) else { return nil }
    do {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let tool = Process()
        tool.executableURL = openssl
        tool.currentDirectoryURL = folder
        tool.arguments = [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "certificate.pem", "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
        ]
        tool.standardError = FileHandle.nullDevice
        try tool.run()
        tool.waitUntilExit()
        guard tool.terminationStatus == 0 else { return nil }
    } catch { return nil }
    return TLSConfiguration(
        certificatePath: folder.appendingPathComponent("certificate.pem").path,
        keyPath: folder.appendingPathComponent("key.pem").path)
}()

@Suite(.enabled(if: certificate != nil)) struct TLSTests {
    private var trusting: TransportSecurity { .tls(TLSOptions(authoritiesPath: certificate?.certificatePath)) }

    @Test(.timeLimit(.minutes(1))) func callsGoThroughTLS() async throws {
        try await withServer(tls: certificate) { server, transport in
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

    @Test(.timeLimit(.minutes(1))) func streamsGoThroughTLS() async throws {
        try await withServer(tls: certificate) { server, transport in
            let channel = channel(transport, port: server.port, security: trusting)
            let recorder = StreamRecorder()
            let stream = channel.open("/p.S/Bidi", recorder)
            let messages = (0..<2_000).map { bytes($0 * 2) }
            for message in messages { stream.send(message) }
            stream.finish()
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages == messages)
        }
    }

    @Test(.timeLimit(.minutes(1))) func certificatesAreChecked() async throws {
        try await withServer(tls: certificate) { server, transport in
            for security in [TransportSecurity.tls(TLSOptions()), trusting] {
                // Nobody vouches for it; or it is for another name.
                var address = ServerAddress(host: "localhost", port: server.port, security: security, proxy: .none)
                if security == trusting { address.host = "127.0.0.1" }
                let channel = GRPCChannel(transport: transport, address: address)
                #expect(await failure { try await channel.unary("/p.S/Unary", message: []) }?.code == .unavailable)
                let recorder = StreamRecorder()
                _ = channel.open("/p.S/Bidi", recorder)
                #expect(await recorder.end().status?.code == .unavailable)
            }
            let careless = channel(
                transport, port: server.port, security: .tls(TLSOptions(trustsAnyCertificate: true)))
            try await expectEqual(careless.unary("/p.S/Unary", message: [1]), [1])
        }
    }

    @Test(.timeLimit(.minutes(1))) func requestsAndRawConnectionsToo() async throws {
        let http: @Sendable (HTTPExchange) -> Void = { $0.respond(status: 200, headers: [], body: bytes(200_000)) }
        try await withServer(tls: certificate, http: http) { server, transport in
            var request = HTTPRequest(url: "https://localhost:\(server.port)/x")
            request.proxy = .none
            request.tls.authoritiesPath = certificate?.certificatePath
            let response = try await HTTPClient(transport: transport).response(to: request, bodyBytesMax: 1 << 20)
            #expect(response.status == 200)
            #expect(response.body == bytes(200_000))
            let text = await rawAnswer(
                transport, ServerAddress(host: "localhost", port: server.port, security: trusting, proxy: .none))
            #expect(text.hasPrefix("HTTP/1.1 200 "))
            #expect(text.utf8.count > 100_000)
        }
    }
}

/// What a server says to a request over a raw connection, up to the end.
func rawAnswer(_ transport: Transport, _ address: ServerAddress) async -> String {
    let answer = Box<String>()
    let received = ByteBox()
    let connection = RawConnection(transport: transport, address: address) { event in
        switch event {
        case .opened, .drained: break
        case .received(let bytes): received.append(bytes)
        case .closed(let status): answer.set(status?.description ?? received.text)
        }
    }
    connection.send(Array("GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".utf8))
    return await answer.value()
}
