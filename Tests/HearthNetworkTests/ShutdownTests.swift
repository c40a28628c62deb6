import HearthModel
import HearthNetwork
import HearthTestSupport
import Testing

@Suite struct ShutdownTests {
    private func makeServer(
        http: @escaping @Sendable (HTTPExchange) -> Void = { $0.respond(status: 200, headers: [], body: []) },
        grpc: @escaping @Sendable (GRPCCall) -> Void = { $0.finish(.ok) }
    ) throws -> NetworkServer {
        let server = NetworkServer(
            configuration: ServerConfiguration(loopCount: 2), http: ClosureHTTPHandler(closure: http),
            grpc: ClosureGRPCHandler(closure: grpc))
        try server.start()
        return server
    }

    @Test func openCallsMayFinish() async throws {
        let open = Box<GRPCCall>()
        let server = try makeServer(grpc: { open.set($0) })
        let client = try await connect(server)
        let goAway = Box<UInt32>()
        let closed = Box<Bool>()
        await onClientLoop {
            client.onGoAway = { goAway.set($0) }
            client.onClose = { closed.set(true) }
        }
        async let result = call(client, "/a/b", messages: [[1]])
        let call = try await open.value()
        async let down: Void = stop(server, graceSeconds: 10)
        #expect(try await goAway.value() == 0)
        // No new connection gets in.
        await #expect(throws: Status.self) { try await connect(server) }
        call.loop.execute {
            call.send([7])
            call.finish(.ok)
        }
        #expect(await result.messages == [[7]])
        #expect(try await closed.value())
        try await down
        server.shutdown(graceSeconds: 10)
        open.forget()
    }

    /// Connections, tables, loops and their buffers: a stopped server leaves nothing in memory.
    @Test(arguments: [false, true]) func aStoppedServerIsReleased(hadConnections: Bool) async throws {
        weak var loop: EventLoop?
        weak var stopped: NetworkServer?
        do {
            let server = try makeServer()
            if hadConnections {
                let client = try await connect(server)
                #expect(try await request(client, "GET", "/").status == 200)
                #expect(await call(client, "/a/b", messages: [[1]]).status == .ok)
            }
            (loop, stopped) = (server.loops.first, server)
            try await stop(server)
        }
        // Other tasks may release their objects a moment later.
        #expect(await eventually { loop == nil && stopped == nil })
    }

    @Test func requestsThatExceedTheGracePeriodAreEnded() async throws {
        let cancelled = Box<Bool>()
        let began = Box<Bool>()
        let server = try makeServer(
            http: { exchange in
                exchange.start(status: 200, headers: [])
                began.set(true)
            },
            grpc: { $0.onCancel = { cancelled.set(true) } })
        let client = try await connect(server)
        async let result = call(client, "/a/b", messages: [[1]])
        let connection = try RawConnection(port: server.port)
        connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try await began.value())
        await until { server.statistics.grpcCalls > 0 }
        try await stop(server, graceSeconds: 0.02)
        let status = await result.status
        #expect(status == .unavailable("the server is shutting down"))
        #expect(try await cancelled.value())
        #expect(try await connection.readStringToEnd().hasPrefix("HTTP/1.1 200"))
    }

    @Test func idleConnectionsDoNotDelayIt() async throws {
        let server = try makeServer()
        let client = try await connect(server)
        #expect(try await request(client, "GET", "/").status == 200)
        let connection = try RawConnection(port: server.port)
        connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try await connection.readAnswer().status == 200)
        let silent = try RawConnection(port: server.port)
        let started = EventLoop.monotonicNanoseconds()
        try await stop(server, graceSeconds: 60)
        #expect(EventLoop.monotonicNanoseconds() - started < 20_000_000_000)
        #expect(try await connection.readToEnd().isEmpty)
        #expect(try await silent.readToEnd().isEmpty)
    }

    /// Nothing is owed to them: with these limits a stop that lingered would last for an hour.
    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HT", ""])
    func clientsThatStayConnectedDoNotDelayIt(sent: String) async throws {
        var limits = NetworkLimits()
        limits.lingerMilliseconds = 3_600_000
        let server = NetworkServer(
            configuration: ServerConfiguration(loopCount: 1, limits: limits),
            http: ClosureHTTPHandler { $0.respond(status: 200, headers: [], body: [1]) },
            grpc: ClosureGRPCHandler { _ in })
        try server.start()
        let connection = try RawConnection(port: server.port)
        connection.send(sent)
        if sent.hasSuffix("\r\n\r\n") { #expect(try await connection.readAnswer().status == 200) }
        while server.statistics.bytesReceived < sent.utf8.count || server.statistics.connectionsOpen == 0 {
            await Task.yield()
        }
        try await stop(server, graceSeconds: 3_600)
        #expect(server.statistics.connectionsOpen == 0)
        #expect(try await connection.readToEnd().isEmpty)
    }

    @Test func aTakenPortIsNamed() throws {
        let server = try makeServer()
        defer { server.shutdown(graceSeconds: 0) }
        let second = NetworkServer(
            configuration: ServerConfiguration(port: server.port), http: ClosureHTTPHandler { _ in },
            grpc: ClosureGRPCHandler { _ in })
        let status = #expect(throws: Status.self) { try second.start() }
        #expect(status?.code == .unavailable)
        #expect(status?.message.contains("127.0.0.1:\(server.port)") == true)
        // And it is free again afterwards.
        server.shutdown(graceSeconds: 0)
        try second.start()
        second.shutdown(graceSeconds: 0)
    }

    @Test func aBadHostIsNamed() throws {
        let server = NetworkServer(
            configuration: ServerConfiguration(host: "192.0.2.1"), http: ClosureHTTPHandler { _ in },
            grpc: ClosureGRPCHandler { _ in })
        let status = #expect(throws: Status.self) { try server.start() }
        #expect(status?.message.contains("192.0.2.1") == true)
    }
}
