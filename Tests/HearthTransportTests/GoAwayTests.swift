import Glibc
import HearthModel
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import Synchronization
import Testing

/// An HTTP/2 server that gives up complete requests on its first connections, and answers on the others.
private final class DepartingServer: Sendable {
    private final class Shared: Sendable {
        let connections = Atomic<Int>(0)
        /// The number of started streams.
        let requests = Atomic<Int>(0)
    }

    enum Departure {
        /// Reports that it processed no request.
        case goAway
        case reset(code: UInt8)
    }

    private let shared: Shared
    private let listener: TestListener

    init(departures: Int, _ departure: Departure = .goAway) throws {
        let shared = Shared()
        self.shared = shared
        listener = try TestListener { connection in
            let number = shared.connections.add(1, ordering: .relaxed).newValue
            Self.serve(connection, shared, number <= departures ? departure : nil)
        }
    }

    var port: Int { listener.port }
    var connections: Int { shared.connections.load(ordering: .relaxed) }
    var requests: Int { shared.requests.load(ordering: .relaxed) }

    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, stream] + payload
    }

    /// HPACK: a literal without indexing.
    private static func field(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
    }

    private static func serve(_ connection: Int32, _ shared: Shared, _ departure: Departure?) {
        guard TestSocket.sendAll(connection, frame(4, 0, 0)) else { return }
        var input: [UInt8] = []
        var position = 24
        while true {
            let more = TestSocket.receive(connection)
            guard !more.isEmpty else { return }
            input += more
            while input.count >= position + 9 {
                let length = Int(input[position]) << 16 | Int(input[position + 1]) << 8 | Int(input[position + 2])
                guard input.count >= position + 9 + length else { break }
                let (type, flags, stream) = (input[position + 3], input[position + 4], input[position + 8])
                position += 9 + length
                if type == 4, flags & 1 == 0 { _ = TestSocket.sendAll(connection, frame(4, 1, 0)) }
                if type == 1 { shared.requests.add(1, ordering: .relaxed) }
                // The request is complete.
                guard type <= 1, flags & 1 == 1 else { continue }
                switch departure {
                case nil:
                    let head = [0x88] + field("content-type", "application/grpc")
                    let answer =
                        frame(1, 4, stream, head) + frame(0, 0, stream, [0, 0, 0, 0, 1, 42])
                        + frame(1, 5, stream, field("grpc-status", "0"))
                    _ = TestSocket.sendAll(connection, answer)
                case .goAway:
                    // The last processed stream: none.
                    _ = TestSocket.sendAll(connection, frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]))
                    shutdown(connection, Int32(SHUT_WR))
                case .reset(let code):
                    _ = TestSocket.sendAll(connection, frame(3, 0, stream, [0, 0, 0, code]))
                }
            }
        }
    }
}

@Suite(.timeLimit(.minutes(Patience.minutes))) struct GoAwayTests {
    @Test func aRefusedCallIsMadeAgain() async throws {
        let server = try DepartingServer(departures: 1)
        let transport = try Transport()
        try await expectEqual(channel(transport, port: server.port).unary("/a/b", message: [1]), [42])
        #expect(server.connections == 2)
        #expect(server.requests == 2)
        try await blocking { transport.shutDown() }
    }

    @Test func onlyOnce() async throws {
        let server = try DepartingServer(departures: 1_000)
        let transport = try Transport()
        let status = await failure { try await channel(transport, port: server.port).unary("/a/b", message: [1]) }
        #expect(status?.code == .unavailable, "\(status?.description ?? "OK")")
        #expect(server.connections == 2)
        #expect(server.requests == 2)
        try await blocking { transport.shutDown() }
    }

    /// Only REFUSED_STREAM means that the request was not processed.
    @Test(
        arguments: [
            (7, nil), (0, Status.Code.internal), (2, .internal), (8, .cancelled), (11, .resourceExhausted),
        ] as [(UInt8, Status.Code?)])
    func aResetCallIsMadeAgainOnlyWhenRefused(_ code: UInt8, _ expected: Status.Code?) async throws {
        let transport = try Transport()
        for message in [[], bytes(20_000)] {
            let server = try DepartingServer(departures: 1, .reset(code: code))
            let channel = channel(transport, port: server.port)
            let status = await failure { try await channel.unary("/a/b", message: message) }
            #expect(status?.code == expected, "\(status?.description ?? "OK")")
            #expect(server.requests == (expected == nil ? 2 : 1))
        }
        try await blocking { transport.shutDown() }
    }

    /// A stream's sent messages are not stored: its user begins again.
    @Test func streamsEndAsUnavailable() async throws {
        let server = try DepartingServer(departures: 1)
        let transport = try Transport()
        let recorder = StreamRecorder()
        let stream = channel(transport, port: server.port).open("/a/b", recorder)
        stream.send([1])
        stream.finish()
        let status = await recorder.end().status
        #expect(status?.code == .unavailable, "\(status?.description ?? "OK")")
        #expect(server.connections == 1)
        try await blocking { transport.shutDown() }
    }
}
