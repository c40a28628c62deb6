@testable import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthTestSupport
import Synchronization
import Testing

@Suite struct HTTP2ServerTests {
    @Test func carriesTheWholeHead() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            let head = exchange.head
            #expect(head.version == .http2)
            #expect(head.path == "/v1/a%2Fb")
            #expect(head.query == "x=1&y")
            #expect(head.target == "/v1/a%2Fb?x=1&y")
            #expect(head.scheme == "http")
            #expect(head.authority.hasPrefix("127.0.0.1:"))
            #expect(head.remoteAddress.hasPrefix("127.0.0.1:"))
            #expect(head.values("x-many") == ["1", "2"])
            exchange.respond(
                status: 201, headers: [HTTPHeader("x-answer", "y"), HTTPHeader("connection", "close")],
                body: Array(head.method.utf8))
        }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            let answer = try await request(
                client, "PATCH", "/v1/a%2Fb?x=1&y",
                headers: [HTTPHeader("x-many", "1"), HTTPHeader("x-many", "2")], body: [1, 2, 3])
            #expect(answer.status == 201)
            #expect(answer.headers.firstValue("x-answer") == "y")
            #expect(answer.headers.firstValue("connection") == nil)
            #expect(answer.headers.firstValue("content-length") == "5")
            #expect(answer.body == Array("PATCH".utf8))
        }
    }

    @Test func echoesTenMebibytesThroughTheWindows() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.start(status: 200, headers: [])
            exchange.onBody = { exchange.write(Array($0)) }
            exchange.onEnd = { exchange.end(trailers: [HTTPHeader("x-done", "yes")]) }
        }
        let body = (0..<(10 << 20)).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 9)) }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            let answer = try await request(client, "POST", "/", body: body)
            #expect(answer.body == body)
            #expect(answer.trailers == [HTTPHeader("x-done", "yes")])
        }
    }

    @Test func continueIsSentBeforeTheBody() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.collectBody(limitBytes: 100) { _ in exchange.respond(status: 200, headers: [], body: []) }
        }
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            let request = RawHTTP2.request(stream: 1, contentType: "text/plain", more: [("expect", "100-continue")])
            connection.send(RawHTTP2.preface + request)
            var seen: [UInt8] = []
            func heads() -> [RawHTTP2.Frame] { RawHTTP2.frames(seen).filter { $0.type == 1 } }
            while heads().isEmpty { seen += try await connection.read(1) }
            #expect(heads()[0].flags & 1 == 0)
            connection.send(RawHTTP2.frame(type: 0, flags: 1, stream: 1, payload: [1]))
            while heads().count < 2 { seen += try await connection.read(1) }
            #expect(heads()[1].flags & 1 == 1)
        }
    }

    @Test func headHasNoBody() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            if exchange.head.path == "/stream" {
                exchange.start(status: 200, headers: [])
                exchange.write([1, 2, 3])
                exchange.end()
            } else {
                exchange.respond(status: 200, headers: [], body: [1, 2, 3])
            }
        }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            let answer = try await request(client, "HEAD", "/")
            #expect(answer.headers.firstValue("content-length") == "3")
            #expect(answer.body.isEmpty)
            #expect(try await request(client, "HEAD", "/stream").body.isEmpty)
        }
    }

    @Test func manyRequestsAtOnceOnOneConnection() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.loop.schedule(afterMilliseconds: 5) {
                exchange.respond(status: 200, headers: [], body: Array(exchange.head.path.utf8))
            }
        }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<600 {
                    group.addTask {
                        try await request(client, "GET", "/\(number)").body == Array("/\(number)".utf8)
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
            #expect(server.statistics.httpRequests == 600)
            #expect(server.statistics.streamsOpen == 0)
            #expect(server.statistics.connectionsOpen == 1)
        }
    }

    @Test func tooLargeBodiesAndHeadsAreRefused() async throws {
        var limits = NetworkLimits()
        limits.bodyBytesMax = 1_000
        limits.headFieldsMax = 10
        limits.targetBytesMax = 100
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.collectBody(limitBytes: 1_000_000) { _ in exchange.respond(status: 200, headers: [], body: []) }
        }
        try await withServer(limits: limits, http: handler) { server in
            let client = try await connect(server)
            let large = [UInt8](repeating: 0, count: 1_001)
            #expect(try await request(client, "POST", "/", body: large).status == 413)
            let length = [HTTPHeader("content-length", "1001")]
            #expect(try await request(client, "POST", "/", headers: length, body: large).status == 413)
            let fields = (0..<20).map { HTTPHeader("x-\($0)", "v") }
            #expect(try await request(client, "GET", "/", headers: fields).status == 431)
            #expect(try await request(client, "GET", "/" + String(repeating: "a", count: 100)).status == 414)
            #expect(try await request(client, "GET", "/").status == 200)
        }
    }

    @Test func collectBodyKeepsItsLimit() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.collectBody(limitBytes: 10) { result in
                guard case .failure(let status) = result else { return exchange.abort() }
                #expect(status.code == .invalidArgument)
                exchange.respond(status: exchange.isBodyTooLarge ? 413 : 400, headers: [], body: [])
            }
        }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            let answer = try await request(client, "POST", "/", body: [UInt8](repeating: 0, count: 11))
            #expect(answer.status == 413)
            // A declared length far above the limit fails immediately.
            let refused: HTTPClientAnswer = try await withCheckedThrowingContinuation { continuation in
                // In one tick of the loop: the response may be sent in the next.
                clientLoop.execute {
                    let declared = client.open(
                        method: "POST", path: "/", headers: [HTTPHeader("content-length", "1000")], hasBody: true)
                    declared.collect { continuation.resume(with: $0) }
                }
            }
            #expect(refused.status == 413)
        }
    }

    @Test func anAbortIsSeenAsAReset() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.start(status: 200, headers: [])
            exchange.write([1])
            exchange.abort()
        }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            await #expect(throws: Status.self) { try await request(client, "GET", "/") }
        }
    }

    @Test func aResetIsACancellationAndHappensOnce() async throws {
        let began = Box<Bool>()
        let cancelled = Box<Int>()
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            nonisolated(unsafe) var count = 0
            exchange.onCancel = {
                count += 1
                cancelled.set(count)
                // None of these calls may have an effect.
                exchange.respond(status: 200, headers: [], body: [])
                #expect(!exchange.write([1]))
                exchange.end()
                exchange.abort()
            }
            began.set(true)
        }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            let stream = await onClientLoop { client.open(method: "GET", path: "/", headers: [], hasBody: false) }
            #expect(try await began.value())
            clientLoop.execute { stream.cancel() }
            #expect(try await cancelled.value() == 1)
            #expect(server.statistics.streamsOpen == 0)
        }
    }

    @Test func aSlowReaderStopsTheProducer() async throws {
        let producer = Producer(pieces: 400, pieceBytes: 50_000)
        try await withServer(http: { producer.run($0) }) { server in
            let client = try await connect(server) { $0.streamWindowBytes = 100_000 }
            let head = Box<Bool>()
            let received = Box<Int>()
            let stream = await onClientLoop { () -> HTTP2ClientStream in
                let stream = client.open(method: "GET", path: "/", headers: [], hasBody: false)
                nonisolated(unsafe) var count = 0
                stream.pauseReading()
                stream.onHead = { _, _ in head.set(true) }
                stream.onBody = { count += $0.count }
                stream.onEnd = { _ in received.set(count) }
                return stream
            }
            #expect(try await head.value())
            let written = try await producer.firstPause.value()
            #expect(written <= 2 + (100_000 + NetworkLimits().answerHighWaterBytes) / 50_000)
            // It does not block another stream of the same connection.
            clientLoop.execute { stream.resumeReading() }
            #expect(try await received.value() == 400 * 50_000)
        }
    }

    @Test func aHandlerThatDoesNotReadHoldsTheSenderBack() async throws {
        var limits = NetworkLimits()
        limits.streamWindowBytes = 100_000
        let waiting = Box<HTTPExchange>()
        let total = Box<Int>()
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            nonisolated(unsafe) var received = 0
            exchange.pauseReading()
            exchange.onBody = { received += $0.count }
            exchange.onEnd = {
                total.set(received)
                exchange.respond(status: 200, headers: [], body: [])
            }
            waiting.set(exchange)
        }
        try await withServer(limits: limits, http: handler) { server in
            let client = try await connect(server)
            // The window is known once a first response has arrived with the SETTINGS.
            let pong = Box<Bool>()
            await onClientLoop {
                client.onPong = { pong.set(true) }
                client.ping()
            }
            #expect(try await pong.value())
            let body = [UInt8](repeating: 5, count: 3_000_000)
            async let answer = request(client, "POST", "/", body: body)
            let exchange = try await waiting.value()
            let another = Box<Bool>()
            await onClientLoop {
                client.onPong = { another.set(true) }
                client.ping()
            }
            #expect(try await another.value())
            #expect(server.statistics.bytesReceived < 200_000)
            exchange.loop.execute { exchange.resumeReading() }
            #expect(try await total.value() == body.count)
            #expect(try await answer.status == 200)
        }
    }

    @Test func theProtocolIsDetectedForAnySplitOfTheFirstBytes() async throws {
        try await withServer { server in
            let connection = try RawConnection(port: server.port)
            for byte in RawHTTP2.preface + RawHTTP2.request(stream: 1, contentType: "text/plain", flags: 5) {
                connection.send([byte])
            }
            var seen: [UInt8] = []
            while !RawHTTP2.frames(seen).contains(where: { $0.type == 1 && $0.stream == 1 }) {
                seen += try await connection.read(1)
            }
        }
    }

    @Test func aHeaderBlockSurvivesAnotherConnectionInBetween() async throws {
        let paths = Mutex([String]())
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            paths.withLock { $0.append("\(exchange.head.path) \(exchange.head.firstValue("x-late") ?? "")") }
            exchange.respond(status: 200, headers: [], body: [])
        }
        try await withServer(http: handler) { server in
            let first = try RawConnection(port: server.port)
            let other = try await connect(server)
            // The block stops in the middle of its frame, then before its CONTINUATION.
            let begin = RawHTTP2.request(stream: 1, path: "/first", contentType: "text/plain", flags: 1)
            first.send(RawHTTP2.preface + begin.dropLast(5))
            await until { server.statistics.bytesReceived >= RawHTTP2.preface.count + begin.count - 5 }
            #expect(try await request(other, "GET", "/second").status == 200)
            first.send(Array(begin.suffix(5)))
            #expect(try await request(other, "GET", "/third").status == 200)
            first.send(RawHTTP2.frame(type: 9, flags: 4, stream: 1, payload: RawHTTP2.block([("x-late", "yes")])))
            var seen: [UInt8] = []
            while !RawHTTP2.frames(seen).contains(where: { $0.type == 1 }) { seen += try await first.read(1) }
            #expect(paths.withLock { $0 } == ["/second ", "/third ", "/first yes"])
        }
    }
}
