import Glibc
import HearthModel
import HearthNetwork
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import Synchronization
import Testing

final class ByteBox: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    func append(_ more: [UInt8]) { bytes.withLock { $0 += more } }
    var string: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }
}

@Suite(.timeLimit(.minutes(Patience.minutes))) struct PlainTests {
    private func request(_ server: NetworkServer, _ path: String, method: String = "GET") -> HTTPRequest {
        var request = HTTPRequest(method: method, url: "http://127.0.0.1:\(server.port)\(path)")
        request.proxy = .none
        return request
    }

    @Test func answersAreComplete() async throws {
        let http: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.collectBody(limitBytes: 1 << 20) { body in
                let string = "\(exchange.head.method) \(exchange.head.target) \((try? body.get().count) ?? -1)"
                exchange.respond(status: 404, headers: [HTTPHeader("x-a", "b")], body: Array(string.utf8))
            }
        }
        try await withServer(http: http) { server, transport in
            let client = HTTPClient(transport: transport)
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                var request = request(server, "/a?b=c", method: method)
                if method != "GET" { request.body = bytes(70_000) }
                let response = try await client.response(to: request, bodyBytesMax: 1_000)
                #expect(response.status == 404)
                #expect(response.headers.firstValue("x-a") == "b")
                let string = "\(method) /a?b=c \(method == "GET" ? 0 : 70_000)"
                #expect(String(decoding: response.body, as: UTF8.self) == string)
            }
            #expect(transport.statistics.socketsOpened == 1)
            let status = await failure { try await client.response(to: request(server, "/"), bodyBytesMax: 3) }
            #expect(status?.code == .resourceExhausted)
        }
    }

    @Test func eventsArriveAsTheyAreSent() async throws {
        let exchange = Box<HTTPExchange>()
        let cancelled = Box<Bool>()
        let http: @Sendable (HTTPExchange) -> Void = {
            $0.onCancel = { cancelled.set(true) }
            $0.start(status: 200, headers: [HTTPHeader("content-type", "text/event-stream")])
            exchange.set($0)
        }
        try await withServer(http: http) { server, transport in
            let head = Box<Int>()
            let first = Box<[UInt8]>()
            let task = HTTPClient(transport: transport).start(request(server, "/events")) { event in
                switch event {
                case .head(let status, _): head.set(status)
                case .body(let bytes): first.set(bytes)
                case .unconnected: Issue.record("not connected")
                case .closed(let status, _): Issue.record("closed: \(status)")
                }
            }
            let served = try await exchange.value()
            try await expectEqual(head.value(), 200)
            served.loop.execute { _ = served.write([1, 2]) }
            try await expectEqual(first.value(), [1, 2])
            task.cancel()
            try await expectEqual(cancelled.value(), true)
        }
    }

    @Test func rawConnectionsCarryBytes() async throws {
        let http: @Sendable (HTTPExchange) -> Void = { $0.respond(status: 200, headers: [], body: [72, 105]) }
        try await withServer(http: http) { server, transport in
            let address = ServerAddress(host: "127.0.0.1", port: server.port, security: .plaintext, proxy: .none)
            let string = try await rawAnswer(transport, address)
            #expect(string.hasPrefix("HTTP/1.1 200 "))
            #expect(string.hasSuffix("Hi"))
            #expect(transport.statistics.sockets == 0)
        }
    }

    /// The connection is not read, so its end is not noticed; the thread must not be woken for it repeatedly.
    @Test func aBrokenConnectionThatNobodyReadsCostsNothing() async throws {
        let isGone = Box<Bool>()
        let server = try TestListener { connection in
            _ = TestSocket.receive(connection)
            // A reset instead of an end.
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(connection, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
            shutdown(connection, Int32(SHUT_RDWR))
            isGone.set(true)
        }
        let end = Box<Status?>()
        try await withServer { silent, transport in
            let connection = RawConnection(
                transport: transport,
                address: ServerAddress(host: "127.0.0.1", port: server.port, security: .plaintext, proxy: .none)
            ) { event in
                if case .closed(let status) = event { end.set(status) }
            }
            connection.setReceiving(false)
            connection.send([1])
            try await expectEqual(isGone.value(), true)
            #expect(await becomesIdle(transport, port: silent.port))
            #expect(end.current == nil)
            connection.setReceiving(true)
            _ = try await end.value()
        }
    }
}
