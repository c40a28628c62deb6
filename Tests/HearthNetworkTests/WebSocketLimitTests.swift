@testable import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthTestSupport
import HearthWebSocket
import Synchronization
import Testing

/// The limits of the memory and time that a client can use.
@Suite struct WebSocketLimitTests {
    /// The client has a thread of its own: it must answer in time, independent of the load of other tests.
    @Test func silentClientsArePingedAndThenDisconnected() async throws {
        var limits = NetworkLimits()
        limits.webSocketPingMilliseconds = 100
        limits.webSocketSilenceMilliseconds = 3_000
        let ended = Box<WebSocketEnd>()
        let pings = Mutex(0)
        try await withServer(limits: limits, http: echo(ended: ended)) { server in
            TCPClient.connect(host: "127.0.0.1", port: server.port, on: clientLoop) { result in
                guard case .success(let client) = result else { return ended.set(.connectionLost) }
                let codec = WebSocketConnection(role: .client)
                nonisolated(unsafe) var head: [UInt8]? = []
                client.onBytes = { [unowned client] bytes in
                    var bytes = Array(bytes)
                    if let held = head {
                        guard let end = (held + bytes).firstRange(of: Array("\r\n\r\n".utf8)) else {
                            head = held + bytes
                            return
                        }
                        bytes = Array((held + bytes)[end.upperBound...])
                        head = nil
                    }
                    for event in (try? codec.receive(bytes)) ?? [] where event == .ping([]) {
                        // Longer than the allowed silence.
                        let count = pings.withLock { pings in
                            pings += 1
                            return pings
                        }
                        if count <= 40 { client.send(codec.pong([])) }
                    }
                }
                client.send(Array((WebSocketPeer.request.joined(separator: "\r\n") + "\r\n\r\n").utf8))
            }
            let end = try await ended.value()
            #expect(end == .timedOut)
            #expect(pings.withLock { $0 } > 40)
            #expect(server.statistics.timeouts == 1)
        }
    }

    @Test func aTricklingMessageIsGivenUp() async throws {
        var limits = NetworkLimits()
        limits.bodyProgressMilliseconds = 100
        let ended = Box<WebSocketEnd>()
        try await withServer(limits: limits, http: echo(ended: ended)) { server in
            let peer = try await WebSocketPeer(server)
            // Single bytes of empty fragments must not reset the timeout.
            peer.send([0x01, 0x80, 0, 0, 0, 0])
            let fragment: [UInt8] = [0x00, 0x80, 0, 0, 0, 0]
            var sent = 0
            while ended.current == nil {
                peer.send([fragment[sent % fragment.count]])
                sent += 1
                // The pace of this client, not a wait for an effect: at full speed they would be a flood.
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(try await peer.closeCode() == .policyViolation)
            #expect(server.statistics.timeouts == 1)
        }
    }

    @Test func tooManyPingsEndTheConnection() async throws {
        var limits = NetworkLimits()
        limits.controlFramesBurstMax = 50
        limits.controlFramesPerSecondMax = 1
        try await withServer(limits: limits, http: echo()) { server in
            let peer = try await WebSocketPeer(server)
            peer.send((0..<60).flatMap { _ in peer.codec.ping() })
            #expect(try await peer.closeCode() == .policyViolation)
            #expect(server.statistics.abuses == 1)
        }
    }

    /// A client that sends and does not read: the responses must not accumulate, and no message may be lost.
    @Test func aClientThatDoesNotReadIsNotRead() async throws {
        var limits = NetworkLimits()
        limits.answerHighWaterBytes = 64 * 1024
        limits.answerLowWaterBytes = 16 * 1024
        let highest = Mutex(0)
        let received = Atomic(0)
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            guard let channel = exchange.upgradeToWebSocket() else { return }
            channel.onText = { [unowned channel] string in
                channel.send(string: string)
                if string.count > 1 { received.add(1, ordering: .relaxed) }
                highest.withLock { $0 = max($0, channel.queuedBytes) }
            }
        }
        try await withServer(limits: limits, http: handler) { server in
            let peer = try await WebSocketPeer(server)
            let string = String(repeating: "x", count: 10_000)
            let connection = peer.connection
            async let sending: Void = blocking {
                let codec = WebSocketConnection(role: .client)
                for _ in 0..<2_000 { connection.send(codec.send(string: Array(string.utf8))) }
            }
            // Until the server has stopped taking them: it has a full queue, and serves another client meanwhile.
            #expect(await eventually { highest.withLock { $0 } >= 64 * 1024 })
            let other = try await WebSocketPeer(server)
            var before = -1
            while case let now = received.load(ordering: .relaxed), now != before {
                before = now
                for _ in 0..<100 {
                    other.send(string: "y")
                    #expect(try await other.nextText() == "y")
                }
            }
            #expect(before < 1_500)
            for _ in 0..<2_000 { #expect(try await peer.nextText() == string) }
            try await sending
            let bytesMax = 64 * 1024 + 10_100
            #expect(highest.withLock { $0 } < bytesMax)
        }
    }

    /// The opposite: the server sends more than the client reads.
    @Test func sendReportsAFullQueue() async throws {
        let message = [UInt8](repeating: 65, count: 50_000)
        let refused = Box<Int>()
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            guard let channel = exchange.upgradeToWebSocket() else { return }
            nonisolated(unsafe) var sent = 0
            @Sendable func fill() {
                while sent < 400 {
                    sent += 1
                    if !channel.send(string: message) {
                        if refused.current == nil { refused.set(channel.queuedBytes) }
                        return
                    }
                }
                channel.close()
            }
            channel.onText = { _ in fill() }
            channel.onWritable = { fill() }
        }
        try await withServer(http: handler) { server in
            let peer = try await WebSocketPeer(server)
            peer.send(string: "go")
            let queued = try await refused.value()
            #expect(queued >= 256 * 1024 && queued < 256 * 1024 + 51_000)
            for _ in 0..<400 { #expect(try await peer.next() == .string(message)) }
            #expect(try await peer.next() == .close(.normal, reason: ""))
        }
    }

    @Test func aHandlerMayPauseReading() async throws {
        let tooEarly = Mutex(0)
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            guard let channel = exchange.upgradeToWebSocket() else { return }
            nonisolated(unsafe) var isPaused = false
            channel.onText = { [unowned channel] string in
                if isPaused { tooEarly.withLock { $0 += 1 } }
                channel.send(string: string)
                isPaused = true
                channel.pauseReading()
                channel.loop.schedule(afterMilliseconds: 1) { [weak channel] in
                    isPaused = false
                    channel?.resumeReading()
                }
            }
        }
        try await withServer(http: handler) { server in
            let peer = try await WebSocketPeer(server)
            peer.send((0..<200).flatMap { peer.codec.send(string: Array(String($0).utf8)) })
            for number in 0..<200 { #expect(try await peer.nextText() == String(number)) }
            #expect(tooEarly.withLock { $0 } == 0)
        }
    }

    @Test func unfinishedMessagesOfAllClientsAreBounded() async throws {
        var limits = NetworkLimits()
        limits.bufferedInputBytesMax = 100_000
        try await withServer(limits: limits, http: echo()) { server in
            let first = try await WebSocketPeer(server)
            let second = try await WebSocketPeer(server)
            let whole = first.codec.send(string: [UInt8](repeating: 65, count: 35_000))
            first.send(Array(whole[..<30_000]))
            #expect(await eventually { server.statistics.bytesReceived >= 30_000 })
            second.send(Array(whole[..<30_000]))
            #expect(try await second.closeCode() == .tryAgainLater)
            first.send(Array(whole[30_000...]))
            #expect(try await first.next() == .string([UInt8](repeating: 65, count: 35_000)))
            // Completed messages are not counted.
            let third = try await WebSocketPeer(server)
            third.send(Array(whole))
            #expect(try await third.next() == .string([UInt8](repeating: 65, count: 35_000)))
        }
    }
}
