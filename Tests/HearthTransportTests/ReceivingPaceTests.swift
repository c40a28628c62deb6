import Glibc
import HearthHTTPClient
import HearthTestSupport
import HearthTransport
import HearthWebSocket
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct ReceivingPaceTests {
    private let pace = ReceivingPace()
    private let calls = Gathered<Bool>()

    @Test func inputPausesWhileMuchWaits() {
        pace.attach { [calls] in calls.append($0) }
        let share = ReceivingPace.waitingBytesMax / 4
        for _ in 0..<3 { pace.received(share) }
        #expect(calls.values == [])
        for _ in 0..<3 { pace.received(share) }
        #expect(calls.values == [false])
        for _ in 0..<4 { pace.taken() }
        #expect(calls.values == [false], "two quarters and what they need besides wait")
        for _ in 0..<5 { pace.taken() }
        #expect(calls.values == [false, true])
        // One message may be larger than all that may wait.
        for _ in 0..<3 {
            pace.received(2 * ReceivingPace.waitingBytesMax)
            pace.taken()
        }
        #expect(calls.values == [false, true, false, true, false, true, false, true])
    }

    @Test func smallMessagesCountToo() {
        pace.attach { [calls] in calls.append($0) }
        for _ in 0..<100_000 { pace.received(0) }
        #expect(calls.values == [false])
        for _ in 0..<100_000 { pace.taken() }
        #expect(calls.values == [false, true])
    }

    @Test func messagesMayArriveBeforeTheConnectionIsKnown() {
        pace.received(2 * ReceivingPace.waitingBytesMax)
        pace.attach { [calls] in calls.append($0) }
        #expect(calls.values == [false])
        pace.taken()
        #expect(calls.values == [false, true])
    }

    /// The server sends 25 MB of pings and reads no pongs. A small receive buffer keeps the kernel from taking them.
    @Test func aFloodOfPingsFillsNoMemory() async throws {
        let server = try TestListener { connection in
            var receiveBytes: Int32 = 16 << 10
            setsockopt(connection, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
            var head: [UInt8] = []
            while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                let bytes = TestSocket.receive(connection)
                if bytes.isEmpty { return }
                head += bytes
            }
            let line = String(decoding: head, as: UTF8.self).split(separator: "\r\n").first {
                $0.lowercased().hasPrefix("sec-websocket-key:")
            }
            let key = line?.split(separator: " ").last.map(String.init) ?? ""
            guard let accept = try? WebSocketKey.accept(key) else { return }
            let answer =
                "HTTP/1.1 101 OK\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: \(accept)\r\n\r\n"
            guard TestSocket.sendAll(connection, Array(answer.utf8)) else { return }
            let pings = [[UInt8]](repeating: [0x89, 125] + [UInt8](repeating: 7, count: 125), count: 1000).flatMap {
                $0
            }
            for _ in 0..<200 where !TestSocket.sendAll(connection, pings) { return }
            guard TestSocket.sendAll(connection, [0x81, 1, 0x61]) else { return }
            while !TestSocket.receive(connection).isEmpty {}
        }
        let transport = try Transport()
        let isOver = Promise<Void>()
        let client = WebSocketClient(
            transport: transport,
            address: ServerAddress(host: "127.0.0.1", port: server.port, security: .plaintext, proxy: .none), path: "/"
        ) { event in
            if case .string = event { isOver.give(()) }
        }
        try await blocking {
            isOver.wait()
            #expect(client.queuedBytes < 128 << 10)
            transport.shutDown()
        }
    }
}
