import Glibc
import HearthModel
import HearthNetwork
import HearthTLS
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import Synchronization
import Testing

/// A server that sends a fixed response on each connection after the first input.
final class FakeServer: Sendable {
    let port: Int
    private let listener: Int32

    /// - Parameters:
    ///   - answer: nil: never answers. The connection is closed after a non-empty answer.
    init(answer: [UInt8]?) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(listener, address, length) == 0, listen(listener, 100) == 0 else { return Int32(-1) }
                return getsockname(listener, address, &length)
            }
        }
        guard code == 0 else { throw Status.unavailable("no socket") }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard let answer else { return }
        Task.detached {
            try await blocking { Self.serve(listener, answer) }
        }
    }

    private static func serve(_ listener: Int32, _ answer: [UInt8]) {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { return }
            var chunk = [UInt8](repeating: 0, count: 4_096)
            _ = recv(connection, &chunk, chunk.count, 0)
            _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
            // Read the client's remaining input, so that closing does not cause a reset.
            shutdown(connection, Int32(SHUT_WR))
            var timeout = timeval(tv_sec: 0, tv_usec: 200_000)
            setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
            while recv(connection, &chunk, chunk.count, 0) > 0 {}
            close(connection)
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }
}

private func withTransport(_ body: (Transport) async throws -> Void) async throws {
    let transport = try Transport()
    try await body(transport)
    try await blocking { transport.shutDown() }
}

/// The results of a call and of a stream to the same server.
private func ends(_ transport: Transport, port: Int, timeoutMilliseconds: Int? = nil) async -> [Status?] {
    let channel = channel(transport, port: port)
    let call = await failure {
        try await channel.unary("/p.S/Unary", message: [1], timeoutMilliseconds: timeoutMilliseconds)
    }
    let recorder = StreamRecorder()
    let stream = channel.open("/p.S/Bidi", recorder, timeoutMilliseconds: timeoutMilliseconds)
    stream.send([1])
    return [call, await recorder.end().status]
}

private final class Counts: Sendable {
    let ok = Atomic<Int>(0)
}

@Suite(.timeLimit(.minutes(Patience.minutes))) struct FailureTests {
    @Test func aRefusedConnectionIsUnavailable() async throws {
        let server = try makeServer()
        let port = server.port
        try await stop(server)
        try await withTransport { transport in
            for status in await ends(transport, port: port) { #expect(status?.code == .unavailable) }
            // All calls that wait for the same connection fail with it.
            let channel = channel(transport, port: port)
            await withTaskGroup(of: Status?.self) { group in
                for _ in 0..<50 { group.addTask { await failure { try await channel.unary("/a/b", message: []) } } }
                for await status in group { #expect(status?.code == .unavailable) }
            }
            #expect(transport.statistics.sockets == 0)
        }
    }

    @Test func aSilentServerMeetsTheDeadline() async throws {
        let silent = try FakeServer(answer: nil)
        try await withTransport { transport in
            for status in await ends(transport, port: silent.port, timeoutMilliseconds: 150) {
                #expect(status?.code == .deadlineExceeded)
            }
        }
    }

    @Test func aBlackHoleMeetsTheConnectTimeout() async throws {
        // TLS waits for an answer that never arrives: equivalent to a route that drops all packets.
        let silent = try FakeServer(answer: nil)
        try await withTransport { transport in
            let address = ServerAddress(
                host: "127.0.0.1", port: silent.port, security: .tls(TLSOptions()), proxy: .none,
                connectTimeoutMilliseconds: 200)
            let channel = GRPCChannel(transport: transport, address: address)
            #expect(await failure { try await channel.unary("/a/b", message: []) }?.code == .unavailable)
            let recorder = StreamRecorder()
            _ = channel.open("/a/b", recorder)
            let end = await recorder.end()
            #expect(end.status?.code == .unavailable)
            #expect(end.openedCount == 0)
        }
    }

    @Test func anUnknownHostIsUnavailable() async throws {
        try await withTransport { transport in
            let address = ServerAddress(host: "nowhere.invalid", port: 1, security: .plaintext, proxy: .none)
            let channel = GRPCChannel(transport: transport, address: address)
            #expect(await failure { try await channel.unary("/a/b", message: []) }?.code == .unavailable)
        }
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "nonsense", ""])
    func whatIsNotHTTP2IsUnavailable(_ answer: String) async throws {
        let server = try FakeServer(answer: Array(answer.utf8))
        try await withTransport { transport in
            for status in await ends(transport, port: server.port) {
                #expect(status?.code == .unavailable, "\(status?.description ?? "OK")")
            }
        }
    }

    /// The bytes come without an end, so that no PING finds the server silent.
    @Test func aStreamEndsWhenTheServerGoesOnWithWhatIsNoHTTP2() async throws {
        let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
        // DATA of no stream.
        let violation: [UInt8] = [0, 0, 1, 0, 0, 0, 0, 0, 0, 7]
        for beginning in [settings + violation, violation] {
            let server = try TestListener { connection in
                _ = TestSocket.receive(connection)
                guard TestSocket.sendAll(connection, beginning) else { return }
                while TestSocket.sendAll(connection, [UInt8](repeating: 0, count: 1000)) { usleep(1000) }
            }
            try await withTransport { transport in
                let recorder = StreamRecorder()
                let stream = channel(transport, port: server.port).open("/p.S/Bidi", recorder)
                stream.send([1])
                #expect(await recorder.end().status?.code == .unavailable)
            }
        }
    }

    @Test func callsContinueAfterARestart() async throws {
        let first = try makeServerToReplace()
        let port = first.port
        try await withTransport { transport in
            let channel = channel(transport, port: port)
            try await expectEqual(channel.unary("/p.S/Unary", message: [1]), [1])
            let recorder = StreamRecorder()
            let stream = channel.open("/p.S/Bidi", recorder)
            stream.send([1])
            await recorder.wait { $0.messages.count == 1 }
            try await stop(first)
            #expect(await recorder.end().status?.code == .unavailable)
            let second = try makeServer(port: port)
            for number in 0..<20 {
                try await expectEqual(channel.unary("/p.S/Unary", message: bytes(number)), bytes(number))
            }
            try await stop(second)
            #expect(await failure { try await channel.unary("/p.S/Unary", message: [1]) }?.code == .unavailable)
        }
    }

    /// Running calls are answered, or fail as unavailable, when the server sends GOAWAY; later calls use the next
    /// connection.
    @Test func callsContinueOverRestartsUnderLoad() async throws {
        nonisolated(unsafe) var server = try makeServerToReplace()
        let port = server.port
        try await withTransport { transport in
            let channel = channel(transport, port: port)
            let counts = Counts()
            let isOver = Box<Bool>()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        while isOver.current == nil, !Task.isCancelled {
                            let status = await failure {
                                expectEqual(try await channel.unary("/p.S/Unary", message: [7]), [7])
                            }
                            if let status { #expect(status.code == .unavailable, "\(status)") }
                            if status == nil { counts.ok.add(1, ordering: .relaxed) }
                        }
                    }
                }
                for _ in 0..<5 {
                    let before = counts.ok.load(ordering: .relaxed)
                    #expect(await eventually { counts.ok.load(ordering: .relaxed) >= before + 200 })
                    try await stop(server, graceSeconds: 1)
                    server = try makeServer(port: port)
                }
                isOver.set(true)
                try await group.waitForAll()
            }
            try await expectEqual(channel.unary("/p.S/Unary", message: [8]), [8])
            #expect(counts.ok.load(ordering: .relaxed) >= 1_000)
        }
        try await stop(server)
    }
}
