@testable import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthTestSupport
import Synchronization
import Testing

/// HTTP/2's ENHANCE_YOUR_CALM.
private let calmDown = 0xB

private func limits(_ change: (inout NetworkLimits) -> Void) -> NetworkLimits {
    var limits = NetworkLimits()
    change(&limits)
    return limits
}

private let nobody: @Sendable (GRPCCall) -> Void = { _ in }

@Suite struct AbuseTests {
    @Test func rapidResetsEndTheConnection() async throws {
        let limits = limits {
            $0.resetsBurstMax = 20
            $0.resetsPerSecondMax = 1
        }
        try await withServer(limits: limits, grpc: nobody) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(RawHTTP2.preface)
            for number in 0..<100 {
                let stream = 2 * number + 1
                connection.send(RawHTTP2.request(stream: stream))
                connection.send(RawHTTP2.frame(type: 3, stream: stream, payload: RawHTTP2.bigEndian(8)))
            }
            #expect(RawHTTP2.goAwayCode(try await connection.readToEnd()) == calmDown)
            #expect(server.statistics.abuses == 1)
        }
    }

    /// A client that provokes the server's resets must not evade the limit on its own resets.
    @Test func provokedResetsCountToo() async throws {
        let limits = limits {
            $0.resetsBurstMax = 20
            $0.resetsPerSecondMax = 1
        }
        try await withServer(limits: limits, grpc: nobody) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(RawHTTP2.preface)
            for number in 0..<100 {
                let stream = 2 * number + 1
                connection.send(RawHTTP2.request(stream: stream))
                // An increment of 0 is a stream error.
                connection.send(RawHTTP2.frame(type: 8, stream: stream, payload: RawHTTP2.bigEndian(0)))
            }
            _ = try await connection.readToEnd()
            #expect(server.statistics.grpcCalls < 100)
        }
    }

    @Test func resetsAfterTheAnswerAreHarmless() async throws {
        let limits = limits {
            $0.resetsBurstMax = 5
            $0.resetsPerSecondMax = 1
        }
        try await withServer(limits: limits, grpc: { $0.finish(.ok) }) { server in
            let client = try await connect(server)
            // Each stream is still open on the client's side when the response is complete, as with libcurl.
            for _ in 0..<50 {
                let finished = Box<Status>()
                let call = await onClientLoop { () -> GRPCClientCall in
                    let call = GRPCClient(client).open(path: "/a/b")
                    call.onFinish = { status, _ in finished.set(status) }
                    return call
                }
                #expect(try await finished.value() == .ok)
                clientLoop.execute { call.cancel() }
            }
            #expect(server.statistics.abuses == 0)
        }
    }

    @Test(arguments: [
        RawHTTP2.frame(type: 6, payload: [1, 2, 3, 4, 5, 6, 7, 8]), RawHTTP2.frame(type: 4),
        RawHTTP2.frame(type: 2, stream: 1, payload: [0, 0, 0, 0, 16]), RawHTTP2.frame(type: 0, stream: 1),
    ])
    func floodsOfEmptyFramesEndTheConnection(frame: [UInt8]) async throws {
        let limits = limits {
            $0.controlFramesBurstMax = 50
            $0.controlFramesPerSecondMax = 1
        }
        try await withServer(limits: limits, grpc: nobody) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(RawHTTP2.preface + RawHTTP2.request(stream: 1))
            for _ in 0..<200 { connection.send(frame) }
            #expect(RawHTTP2.goAwayCode(try await connection.readToEnd()) == calmDown)
        }
    }

    @Test func aFewPingsAreAnswered() async throws {
        try await withServer { server in
            let client = try await connect(server)
            for _ in 0..<100 {
                let pong = Box<Bool>()
                await onClientLoop {
                    client.onPong = { pong.set(true) }
                    client.ping()
                }
                #expect(try await pong.value())
            }
        }
    }

    @Test func continuationFloodsEndTheConnection() async throws {
        try await withServer(grpc: nobody) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(RawHTTP2.preface + RawHTTP2.request(stream: 1, flags: 0))
            let field = RawHTTP2.block([("x-a", "b")])
            for _ in 0..<1_000 { connection.send(RawHTTP2.frame(type: 9, stream: 1, payload: field)) }
            _ = try await connection.readToEnd()
            #expect(server.statistics.grpcCalls == 0)
        }
    }

    @Test func headersFarAboveTheLimitEndTheConnection() async throws {
        let limits = limits { $0.headBytesMax = 1_000 }
        try await withServer(limits: limits, grpc: nobody) { server in
            let connection = try RawConnection(port: server.port)
            let more = (0..<200).map { ("x-\($0)", "some value") }
            connection.send(RawHTTP2.preface + RawHTTP2.request(stream: 1, more: more))
            _ = try await connection.readToEnd()
            #expect(server.statistics.abuses == 1)
        }
    }

    @Test func moreStreamsThanAllowedAreRefused() async throws {
        let limits = limits { $0.concurrentStreamsMax = 10 }
        try await withServer(limits: limits, grpc: nobody) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(RawHTTP2.preface)
            for number in 0..<20 { connection.send(RawHTTP2.request(stream: 2 * number + 1)) }
            connection.send(RawHTTP2.frame(type: 6, payload: [1, 2, 3, 4, 5, 6, 7, 8]))
            var seen: [UInt8] = []
            while !RawHTTP2.frames(seen).contains(where: { $0.type == 6 }) { seen += try await connection.read(1) }
            #expect(server.statistics.streamsOpen == 10)
        }
    }

    @Test(arguments: ["GET / HT", "GET / HTTP/1.1\r\nHost: h\r\n", "PRI * HT"])
    func aSlowHeadIsGivenUp(start: String) async throws {
        try await withServer(limits: limits { $0.headMilliseconds = 40 }) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(start)
            let answer = try await connection.readStringToEnd()
            #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 408 "))
            #expect(server.statistics.timeouts == 1)
        }
    }

    @Test func aSlowHeaderBlockIsGivenUp() async throws {
        try await withServer(limits: limits { $0.headMilliseconds = 40 }, grpc: nobody) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(RawHTTP2.preface + RawHTTP2.request(stream: 1, flags: 0))
            _ = try await connection.readToEnd()
            #expect(server.statistics.timeouts == 1)
        }
    }

    @Test func aSlowBodyIsGivenUp() async throws {
        let cancelled = Box<Bool>()
        try await withServer(
            limits: limits { $0.bodyProgressMilliseconds = 40 },
            http: { exchange in
                exchange.onCancel = { cancelled.set(true) }
                exchange.onBody = { _ in }
            }
        ) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n012")
            #expect(try await connection.readStringToEnd().hasPrefix("HTTP/1.1 408 "))
            #expect(try await cancelled.value())
            let client = try await connect(server)
            let failed = Box<Status>()
            clientLoop.execute {
                let stream = client.open(method: "POST", path: "/", headers: [], hasBody: true)
                stream.onFailure = { failed.set($0) }
                stream.write([1, 2])
            }
            #expect(try await failed.value().code == .cancelled)
        }
    }

    @Test func aSlowMessageIsGivenUpAndAnIdleStreamIsNot() async throws {
        let calls = Box<Bool>()
        try await withServer(
            limits: limits { $0.bodyProgressMilliseconds = 40 },
            grpc: { call in
                if call.path == "/a/unary" { return call.unary { _ in call.finish(.ok) } }
                call.onMessage = { _ in }
                if call.path == "/a/idle" { calls.set(true) }
            }
        ) { server in
            let client = try await connect(server)
            let idle = Box<Status>()
            await onClientLoop { GRPCClient(client).open(path: "/a/idle").onFinish = { status, _ in idle.set(status) } }
            #expect(try await calls.value())
            for (path, bytes) in [("/a/stream", [0, 0, 0, 0, 9, 1]), ("/a/unary", [])] as [(String, [UInt8])] {
                let answer = try await withCheckedThrowingContinuation { continuation in
                    clientLoop.execute {
                        let headers = [HTTPHeader("content-type", "application/grpc")]
                        let stream = client.open(method: "POST", path: path, headers: headers, hasBody: true)
                        stream.collect { continuation.resume(with: $0) }
                        if !bytes.isEmpty { stream.write(bytes) }
                    }
                }
                #expect(answer.headers.firstValue("grpc-status") == "4")
            }
            #expect(idle.current == nil)
        }
    }

    @Test func anAnswerThatNobodyReadsIsGivenUp() async throws {
        let cancelled = Box<Bool>()
        try await withServer(
            limits: limits { $0.writeStallMilliseconds = 60 },
            http: { exchange in
                exchange.onCancel = { cancelled.set(true) }
                exchange.start(status: 200, headers: [])
                while exchange.write([UInt8](repeating: 1, count: 100_000)) {}
            }
        ) { server in
            let client = try await connect(server) { $0.streamWindowBytes = 65_535 }
            let failed = Box<Status>()
            await onClientLoop {
                let stream = client.open(method: "GET", path: "/", headers: [], hasBody: false)
                stream.pauseReading()
                stream.onFailure = { failed.set($0) }
            }
            #expect(try await failed.value().code == .cancelled)
            #expect(try await cancelled.value())
        }
    }

    @Test func aSocketThatNobodyReadsIsClosed() async throws {
        let cancelled = Box<Bool>()
        try await withServer(
            limits: limits { $0.writeStallMilliseconds = 60 },
            http: { exchange in
                exchange.onCancel = { cancelled.set(true) }
                exchange.start(status: 200, headers: [])
                exchange.onWritable = { while exchange.write([UInt8](repeating: 1, count: 1_000_000)) {} }
                while exchange.write([UInt8](repeating: 1, count: 1_000_000)) {}
            }
        ) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await cancelled.value())
            _ = connection
        }
    }

    @Test func idleConnectionsAreClosed() async throws {
        let limits = limits {
            $0.idleHTTP1Milliseconds = 1_000
            $0.idleHTTP2Milliseconds = 1_000
        }
        try await withServer(limits: limits) { server in
            let silent = try RawConnection(port: server.port)
            #expect(try await silent.readToEnd().isEmpty)
            let used = try RawConnection(port: server.port)
            used.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await used.readAnswer().status == 404)
            #expect(try await used.readToEnd().isEmpty)
            let client = try await connect(server)
            let closed = Box<Bool>()
            clientLoop.execute {
                if client.isClosed { closed.set(true) } else { client.onClose = { closed.set(true) } }
            }
            #expect(try await closed.value())
            #expect(await onClientLoop { client.hasReceivedGoAway })
        }
    }

    @Test func aDeadPeerIsDetected() async throws {
        let limits = limits {
            $0.pingAfterSilenceMilliseconds = 500
            $0.pingAnswerMilliseconds = 500
        }
        let cancelled = Box<Bool>()
        try await withServer(limits: limits, grpc: { $0.onCancel = { cancelled.set(true) } }) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(RawHTTP2.preface + RawHTTP2.request(stream: 1))
            let frames = RawHTTP2.frames(try await connection.readToEnd())
            #expect(frames.contains { $0.type == 6 && $0.flags == 0 })
            #expect(try await cancelled.value())
        }
    }

    @Test func tooManyConnectionsAreClosed() async throws {
        try await withServer(limits: limits { $0.connectionsMax = 2 }, http: { _ in }) { server in
            let first = try RawConnection(port: server.port)
            let second = try RawConnection(port: server.port)
            for connection in [first, second] {
                connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            }
            while server.statistics.httpRequests < 2 { await Task.yield() }
            #expect(try await RawConnection(port: server.port).readToEnd().isEmpty)
            #expect(server.statistics.connectionsRefused == 1)
            withExtendedLifetime((first, second)) {}
        }
    }

    @Test func unfinishedRequestsOfAllPeersAreBounded() async throws {
        let limits = limits { $0.bufferedInputBytesMax = 300_000 }
        try await withServer(limits: limits, grpc: echoService) { server in
            let client = try await connect(server)
            let large = await call(client, "/p.S/Unary", messages: [[UInt8](repeating: 0, count: 2_000_000)])
            #expect(large.status.code == .unavailable)
            for _ in 0..<10 {
                let small = await call(client, "/p.S/Unary", messages: [[UInt8](repeating: 0, count: 100_000)])
                #expect(small.status == .ok)
            }
        }
    }

    @Test("a cancelled call's partial message is not counted any more")
    func cancelledCallsReleaseMemory() async throws {
        let limits = limits { $0.bufferedInputBytesMax = 300_000 }
        try await withServer(limits: limits, grpc: echoService) { server in
            let client = try await connect(server)
            for _ in 0..<30 {
                // The header of a message of 200,000 bytes, and some of them.
                let part = [0] + RawHTTP2.bigEndian(200_000) + [UInt8](repeating: 0, count: 50_000)
                await onClientLoop {
                    let headers = [HTTPHeader("content-type", "application/grpc")]
                    let stream = client.open(method: "POST", path: "/p.S/Unary", headers: headers, hasBody: true)
                    stream.write(part)
                    // After the bytes, which are sent at the end of the tick.
                    clientLoop.execute { stream.cancel() }
                }
            }
            let small = await call(client, "/p.S/Unary", messages: [[UInt8](repeating: 0, count: 100_000)])
            #expect(small.status == .ok)
        }
    }

    @Test("a client that sends thousands of messages at once yields between frames")
    func messagesOfOpenStreamsAreSliced() async throws {
        let count = Mutex(0)
        let inFirstTick = Box<Int>()
        let isDone = Box<Bool>()
        let counting: @Sendable (GRPCCall) -> Void = { call in
            call.onMessage = { _ in
                let now = count.withLock { count in
                    count += 1
                    return count
                }
                if now == 1 { call.loop.execute { inFirstTick.set(count.withLock { $0 }) } }
                if now == 8_000 { isDone.set(true) }
            }
        }
        try await withServer(limits: limits { $0.tickMicroseconds = 0 }, grpc: counting) { server in
            let connection = try RawConnection(port: server.port)
            let messages = (0..<1_000).flatMap { _ in [0, 0, 0, 0, 1, 7] as [UInt8] }
            let frames = (0..<8).flatMap { _ in RawHTTP2.frame(type: 0, stream: 1, payload: messages) }
            connection.send(RawHTTP2.preface + RawHTTP2.request(stream: 1) + frames)
            #expect(try await isDone.value())
            #expect(try await inFirstTick.value() <= 1_000)
        }
    }

    @Test func nonsenseAfterThePrefaceEndsTheConnection() async throws {
        try await withServer { server in
            let connection = try RawConnection(port: server.port)
            connection.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [UInt8](repeating: 0xFF, count: 100))
            #expect(RawHTTP2.goAwayCode(try await connection.readToEnd()) != nil)
        }
    }
}
