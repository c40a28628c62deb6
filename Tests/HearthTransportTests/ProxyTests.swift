import Glibc
import HearthModel
import HearthNetwork
import HearthTestCertificates
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import Testing

/// The process's proxies, set in its environment once: hosts of 127.0.0.1 and localhost do not use them, so that other
/// tests are not affected.
///
/// The environment is replaced as a whole and never freed, because other threads may be reading it.
private struct EnvironmentProxies: Sendable {
    let plain: ConnectProxy
    let secure: ConnectProxy

    static let shared: EnvironmentProxies? = try? EnvironmentProxies()

    private init() throws {
        plain = try ConnectProxy()
        secure = try ConnectProxy()
        guard let symbol = dlsym(nil, "environ") else { throw Status.internalError("no environment") }
        let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"]
        let environment = symbol.assumingMemoryBound(to: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?.self)
        var entries: [UnsafeMutablePointer<CChar>?] = []
        var position = environment.pointee
        while let entry = position?.pointee {
            let string = String(cString: entry)
            if !names.contains(where: { string.hasPrefix($0 + "=") }) { entries.append(entry) }
            position = position.map { $0 + 1 }
        }
        for entry in ["http_proxy=\(plain.url)", "https_proxy=\(secure.url)", "NO_PROXY=localhost,127.0.0.1"] {
            entries.append(strdup(entry))
        }
        let replaced = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: entries.count + 1)
        for (index, entry) in entries.enumerated() { (replaced + index).initialize(to: entry) }
        (replaced + entries.count).initialize(to: nil)
        environment.pointee = replaced
    }
}

@Suite(.timeLimit(.minutes(Patience.minutes))) struct ProxyTests {
    /// A call and a stream, which must both succeed.
    private func expectEchoes(_ transport: Transport, _ address: ServerAddress) async throws {
        let channel = GRPCChannel(transport: transport, address: address)
        try await expectEqual(channel.unary("/p.S/Unary", message: [1]), [1])
        let recorder = StreamRecorder()
        let stream = channel.open("/p.S/Bidi", recorder)
        let messages = (0..<500).map { bytes($0 * 20) }
        for message in messages { stream.send(message) }
        stream.finish()
        let end = await recorder.end()
        #expect(end.status == .ok)
        #expect(end.messages == messages)
    }

    @Test func plainCallsAndStreamsGoThroughATunnel() async throws {
        try await withServer { server, transport in
            let proxy = try ConnectProxy()
            // Only the proxy knows the host name.
            let address = ServerAddress(
                host: "hearth.example", port: server.port, security: .plaintext, proxy: .url(proxy.url))
            try await expectEchoes(transport, address)
            #expect(proxy.targets == Array(repeating: "hearth.example:\(server.port)", count: 2))
        }
    }

    @Test func tlsGoesThroughATunnel() async throws {
        try await withServer(tls: Certificates.shared.server.server) { server, transport in
            let proxy = try ConnectProxy()
            var address = ServerAddress(
                host: "hearth.example", port: server.port, security: Certificates.shared.trusting,
                proxy: .url(proxy.url))
            try await expectEchoes(transport, address)
            // A fully qualified name.
            address.host = "hearth.example."
            try await expectEchoes(transport, address)
            // The server's certificate is verified, not the proxy's.
            address.host = "stranger.example"
            let recorder = StreamRecorder()
            _ = GRPCChannel(transport: transport, address: address).open("/p.S/Bidi", recorder)
            let status = await recorder.end().status
            #expect(status?.code == .unavailable)
            #expect(status?.message.lowercased().contains("hostname mismatch") == true)
            #expect(proxy.targets.count == 5)
        }
    }

    @Test func aProxyThatRefusesIsNamed() async throws {
        try await withServer { server, transport in
            let proxy = try ConnectProxy(refusal: "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            for security in [TransportSecurity.plaintext, Certificates.shared.trusting] {
                let address = ServerAddress(
                    host: "localhost", port: server.port, security: security, proxy: .url(proxy.url))
                let channel = GRPCChannel(transport: transport, address: address)
                let call = await failure { try await channel.unary("/p.S/Unary", message: [1]) }
                let recorder = StreamRecorder()
                _ = channel.open("/p.S/Bidi", recorder)
                for status in [call, await recorder.end().status] {
                    #expect(status?.code == .unavailable)
                    #expect(status?.message.contains("403") == true)
                }
            }
        }
    }

    @Test func theEnvironmentNamesProxies() async throws {
        let proxies = try #require(EnvironmentProxies.shared)
        let certificates = Certificates.shared
        for isSecure in [false, true] {
            try await withServer(tls: isSecure ? certificates.server.server : nil) { server, transport in
                let security = isSecure ? certificates.trusting : .plaintext
                let (used, unused) = isSecure ? (proxies.secure, proxies.plain) : (proxies.plain, proxies.secure)
                let unusedBefore = unused.targets.count
                try await expectEchoes(
                    transport, ServerAddress(host: "hearth.example", port: server.port, security: security))
                let target = "hearth.example:\(server.port)"
                #expect(used.targets.filter { $0 == target }.count == 2)
                #expect(unused.targets.count == unusedBefore)
                // NO_PROXY.
                let usedBefore = used.targets.count
                for host in ["localhost", "127.0.0.1"] {
                    try await expectEchoes(transport, ServerAddress(host: host, port: server.port, security: security))
                }
                #expect(used.targets.count == usedBefore)
                // Proxies are disabled.
                let address = ServerAddress(host: "hearth.example", port: server.port, security: security, proxy: .none)
                let recorder = StreamRecorder()
                _ = GRPCChannel(transport: transport, address: address).open("/p.S/Bidi", recorder)
                #expect(await recorder.end().status?.code == .unavailable)
                #expect(used.targets.count == usedBefore)
            }
        }
    }

    @Test func plainRequestsAndRawConnectionsToo() async throws {
        let http: @Sendable (HTTPExchange) -> Void = { $0.respond(status: 200, headers: [], body: [72, 105]) }
        try await withServer(tls: Certificates.shared.server.server, http: http) { server, transport in
            let proxy = try ConnectProxy()
            var request = HTTPRequest(url: "https://hearth.example:\(server.port)/x")
            request.proxy = .url(proxy.url)
            request.tls.authoritiesPath = Certificates.shared.authority.certificatePath
            let response = try await HTTPClient(transport: transport).response(to: request, bodyBytesMax: 1 << 20)
            #expect(response.body == [72, 105])
            let address = ServerAddress(
                host: "hearth.example", port: server.port, security: Certificates.shared.trusting,
                proxy: .url(proxy.url))
            let string = try await rawAnswer(transport, address)
            #expect(string.hasSuffix("Hi"))
            #expect(proxy.targets.count == 2)
        }
    }

    // MARK: PING

    @Test func aBlackHoleIsDetected() async throws {
        try await withServer { server, transport in
            for security in [TransportSecurity.plaintext, Certificates.shared.trusting] {
                let proxy = try ConnectProxy()
                let gateway = try TLSGateway(to: server.port)
                let port = security == .plaintext ? server.port : gateway.port
                let address = ServerAddress(host: "localhost", port: port, security: security, proxy: .url(proxy.url))
                let channel = GRPCChannel(
                    transport: transport, address: address,
                    keepAlive: KeepAlive(idleMilliseconds: 300, answerMilliseconds: 1_000))
                let recorder = StreamRecorder()
                let stream = channel.open("/p.S/Bidi", recorder)
                stream.send([1])
                await recorder.wait { $0.messages.count == 1 }
                // PINGs that are answered, for longer than the allowed silence: each follows an idle time.
                let answers = proxy.answers
                #expect(await eventually { proxy.answers >= answers + 5 || recorder.now.status != nil })
                #expect(recorder.now.status == nil)
                proxy.freeze()
                let clock = ContinuousClock()
                let time = await clock.measure {
                    let status = await recorder.end().status
                    #expect(status?.code == .unavailable)
                    #expect(status?.message.contains("does not answer") == true)
                }
                #expect(time >= .milliseconds(900))
            }
        }
    }

    /// Then the consumer is silent, not the server.
    @Test func aPausedStreamIsNoBlackHole() async throws {
        try await withServer(grpc: flood(200)) { server, transport in
            let probing = GRPCChannel(
                transport: transport,
                address: ServerAddress(host: "127.0.0.1", port: server.port, security: .plaintext, proxy: .none),
                keepAlive: KeepAlive(idleMilliseconds: 200, answerMilliseconds: 3_000))
            let recorder = StreamRecorder()
            let stream = probing.openPausing(recorder, at: [3])
            await recorder.wait { $0.messages.count >= 3 }
            // A later timer of the same thread, on another connection, has passed.
            let later = StreamRecorder()
            let unanswered = channel(transport, port: server.port).open(
                "/p.S/Silent", later, timeoutMilliseconds: 5_000)
            #expect(await later.end().status?.code == .deadlineExceeded)
            #expect(unanswered.queuedBytes == 0)
            #expect(recorder.now.status == nil)
            #expect(recorder.now.messages.count == 3)
            stream.resumeReceiving()
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages.count == 200)
        }
    }
}
