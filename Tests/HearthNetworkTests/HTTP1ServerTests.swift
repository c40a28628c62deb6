import HearthModel
import HearthNetwork
import HearthTestSupport
import Testing

/// Answers with method, target and body.
@Sendable private func echo(_ exchange: HTTPExchange) {
    exchange.collectBody(limitBytes: 1 << 30) { result in
        switch result {
        case .success(let body):
            let line = Array("\(exchange.head.method) \(exchange.head.target) ".utf8)
            exchange.respond(status: 200, headers: [HTTPHeader("content-type", "text/plain")], body: line + body)
        case .failure(let status):
            exchange.respond(status: status.code.httpStatus, headers: [], body: Array(status.message.utf8))
        }
    }
}

@Suite struct HTTP1ServerTests {
    @Test func answersRequestAfterRequestOnOneConnection() async throws {
        try await withServer(http: echo) { server in
            let connection = try RawConnection(port: server.port)
            for number in 0..<3 {
                connection.send("POST /\(number) HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
                let answer = try await connection.readAnswer()
                #expect(answer.status == 200)
                #expect(answer.string == "POST /\(number) ab")
                #expect(answer.headers["date"] != nil)
                #expect(answer.headers["connection"] == nil)
            }
        }
    }

    @Test func answersEveryByteSplit() async throws {
        try await withServer(http: echo) { server in
            let connection = try RawConnection(port: server.port)
            for byte in "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".utf8 {
                connection.send([byte])
            }
            #expect(try await connection.readAnswer().string == "POST /x abc")
        }
    }

    @Test func answersPipelinedRequestsInOrder() async throws {
        // The first responses are ready later than the others.
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            guard exchange.head.path != "/0" else {
                exchange.loop.schedule(afterMilliseconds: 20) { echo(exchange) }
                return
            }
            echo(exchange)
        }
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            let count = 2_000
            connection.send(
                (0..<count).map { "GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined())
            for number in 0..<count { #expect(try await connection.readAnswer().string == "GET /\(number) ") }
        }
    }

    @Test func headHasNoBody() async throws {
        try await withServer(http: echo) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
            let head = try await connection.readAnswer(hasBody: false)
            #expect(head.headers["content-length"] == "8")
            #expect(try await connection.readAnswer().string == "GET /b ")
        }
    }

    @Test func continueIsSentBeforeTheBody() async throws {
        try await withServer(http: echo) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await connection.readAnswer().status == 100)
            connection.send("ab")
            #expect(try await connection.readAnswer().string == "POST / ab")
        }
    }

    @Test func anAnswerInsteadOfContinueClosesTheConnection() async throws {
        try await withServer { server in
            let connection = try RawConnection(port: server.port)
            connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            let string = try await connection.readStringToEnd()
            #expect(string.hasPrefix("HTTP/1.1 404 "))
            #expect(string.contains("connection: close"))
        }
    }

    @Test func streamsInChunksAndToTheEndForOldClients() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.start(status: 200, headers: [])
            for number in 0..<3 { exchange.write(Array("part \(number);".utf8)) }
            exchange.end(trailers: [HTTPHeader("x-sum", "1")])
        }
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = try await connection.readAnswer()
            #expect(answer.string == "part 0;part 1;part 2;")
            #expect(answer.headers["transfer-encoding"] == "chunked")
            let old = try RawConnection(port: server.port)
            old.send("GET / HTTP/1.0\r\n\r\n")
            let string = try await old.readStringToEnd()
            #expect(string.hasSuffix("\r\n\r\npart 0;part 1;part 2;"))
            #expect(!string.contains("chunked"))
        }
    }

    @Test func aValueCannotBreakOutOfItsField() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = {
            $0.respond(status: 200, headers: [HTTPHeader("x-name", "a\r\nset-cookie: b\r\n\r\nc")], body: [])
        }
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = try await connection.readAnswer()
            #expect(answer.headers["set-cookie"] == nil)
            #expect(answer.headers["x-name"] == "a  set-cookie: b    c")
        }
    }

    @Test(arguments: [
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\nHost: h\n\n", "nonsense\r\n\r\n", "\u{1}\u{2}\r\n\r\n",
    ])
    func badRequestsAreAnsweredAndClosed(string: String) async throws {
        try await withServer(http: { _ in Issue.record("must not come through") }) { server in
            let connection = try RawConnection(port: server.port)
            connection.send(string)
            let answer = try await connection.readStringToEnd()
            #expect(answer.hasPrefix("HTTP/1.1 400 "))
            #expect(answer.contains("connection: close"))
            #expect(server.statistics.badRequests == 1)
        }
    }

    @Test func tooLargeBodiesAreRefused() async throws {
        var limits = NetworkLimits()
        limits.bodyBytesMax = 10
        try await withServer(limits: limits, http: echo) { server in
            let declared = try RawConnection(port: server.port)
            declared.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n")
            let refusal = try await declared.readStringToEnd()
            #expect(refusal.hasPrefix("HTTP/1.1 413 "))
            #expect(
                refusal.contains(#"{"error":{"code":413,"message":"Request payload size exceeds the limit: 10 bytes.""#)
            )
            let chunked = try RawConnection(port: server.port)
            chunked.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n8\r\n0123")
            #expect(try await chunked.readAnswer().status == 413)
        }
    }

    @Test func theHandlerIsNotifiedOfADisconnect() async throws {
        let began = Box<Bool>()
        let cancelled = Box<Bool>()
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.onCancel = {
                #expect(exchange.isFinished)
                cancelled.set(true)
            }
            began.set(true)
        }
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await began.value())
            connection.finishSending()
            #expect(try await cancelled.value())
        }
    }

    @Test func theRestOfAnUnwantedBodyIsSkipped() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = {
            $0.respond(status: 403, headers: [], body: Array("no".utf8))
        }
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n01234")
            #expect(try await connection.readAnswer().status == 403)
            connection.send("56789GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await connection.readAnswer().status == 403)
        }
    }

    @Test func theRestIsSkippedOfABodyWhoseHandlerHadPausedReading() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.onBody = { _ in
                exchange.pauseReading()
                // Outside of the parser, as most answers are.
                exchange.loop.execute { exchange.respond(status: 403, headers: [], body: Array("no".utf8)) }
            }
            exchange.onEnd = { exchange.respond(status: 200, headers: [], body: []) }
        }
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n01234")
            #expect(try await connection.readAnswer().status == 403)
            connection.send("56789GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await connection.readAnswer().status == 200)
        }
    }

    @Test func whatIsCompleteBeforeAnAbortedAnswerIsSent() async throws {
        let large = [UInt8](repeating: 7, count: 8 << 20)
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            switch exchange.head.path {
            case "/large": exchange.respond(status: 200, headers: [], body: large)
            case "/begun":
                exchange.start(status: 200, headers: [])
                exchange.write(Array("part".utf8))
                exchange.abort()
            default: exchange.abort()
            }
        }
        var limits = NetworkLimits()
        // The next request is begun although the answer before it waits.
        limits.answerHighWaterBytes = 32 << 20
        try await withServer(limits: limits, http: handler) { server in
            for path in ["/begun", "/"] {
                let connection = try RawConnection(port: server.port)
                connection.send(["/large", path, "/large"].map { "GET \($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined())
                #expect(try await connection.readAnswer().body == large)
                let rest = try await connection.readStringToEnd()
                // Visibly incomplete: without the last chunk.
                #expect(path == "/" ? rest.isEmpty : rest.hasSuffix("4\r\npart\r\n"))
            }
        }
    }

    @Test func aSlowReaderStopsTheProducer() async throws {
        let producer = Producer(pieces: 2_000, pieceBytes: 10_000)
        try await withServer(http: { producer.run($0) }) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            // The producer must wait long before it has produced everything: the rest is in no buffer.
            let written = try await producer.firstPause.value()
            #expect(written < 1_500)
            let answer = try await connection.readAnswer()
            #expect(answer.body.count == 2_000 * 10_000)
            let firsts = stride(from: 0, to: answer.body.count, by: 10_000).map { answer.body[$0] }
            #expect(firsts == (0..<2_000).map { UInt8(truncatingIfNeeded: $0) })
        }
    }

    @Test func aPausedHandlerHoldsTheSenderBack() async throws {
        let paused = Box<HTTPExchange>()
        let total = Box<Int>()
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            nonisolated(unsafe) var received = 0
            exchange.onBody = { bytes in
                let isFirst = received == 0
                received += bytes.count
                if isFirst {
                    exchange.pauseReading()
                    paused.set(exchange)
                }
            }
            exchange.onEnd = {
                total.set(received)
                exchange.respond(status: 200, headers: [], body: [])
            }
        }
        let count = 20_000_000
        try await withServer(http: handler) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(count)\r\n\r\n")
            async let sent: Void = blocking { connection.send([UInt8](repeating: 1, count: count)) }
            let exchange = try await paused.value()
            // Kernel buffers hold some megabytes, the server at most one read.
            #expect(server.statistics.bytesReceived < count / 2)
            exchange.loop.execute { exchange.resumeReading() }
            #expect(try await total.value() == count)
            try await sent
            #expect(try await connection.readAnswer().status == 200)
        }
    }
}

/// Writes numbered pieces as long as the queue has space.
final class Producer: @unchecked Sendable {
    // Guarded by the loop of the exchange.
    private var written = 0
    private let pieces: Int
    private let pieceBytes: Int
    let firstPause = Box<Int>()

    init(pieces: Int, pieceBytes: Int) {
        self.pieces = pieces
        self.pieceBytes = pieceBytes
    }

    func run(_ exchange: HTTPExchange) {
        exchange.start(status: 200, headers: [])
        exchange.onWritable = { [self] in produce(exchange) }
        produce(exchange)
    }

    private func produce(_ exchange: HTTPExchange) {
        while written < pieces {
            let piece = [UInt8](repeating: UInt8(truncatingIfNeeded: written), count: pieceBytes)
            written += 1
            if !exchange.write(piece) {
                firstPause.set(firstPause.current ?? written)
                return
            }
        }
        exchange.end()
    }
}
