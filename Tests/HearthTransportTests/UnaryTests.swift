import HearthModel
import HearthNetwork
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct UnaryTests {
    @Test func callsSucceed() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            for count in [0, 1, 10, 1_000, 100_000, 5 << 20] {
                try await expectEqual(channel.unary("/p.S/Unary", message: bytes(count)), bytes(count))
            }
            #expect(transport.statistics.sockets == 1)
        }
    }

    @Test func severalMessagesAreCollected() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            try await expectEqual(channel.collect("/p.S/Split", message: [1, 2, 3]), [[1], [2], [3]])
            try await expectEqual(channel.collect("/p.S/Split", message: []), [])
            #expect(await failure { try await channel.unary("/p.S/Split", message: [1, 2]) }?.code == .internal)
            #expect(await failure { try await channel.unary("/p.S/Split", message: []) }?.code == .internal)
        }
    }

    @Test func oneAfterTheOtherUsesOneConnection() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            for number in 0..<1_500 {
                let message = Array("\(number)".utf8)
                try await expectEqual(channel.unary("/p.S/Unary", message: message), message)
            }
            #expect(transport.statistics.socketsOpened == 1)
            #expect(transport.statistics.transfers == 0)
        }
    }

    @Test func manyAtOnceShareFewConnections() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            for _ in 0..<5 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<1_000 {
                        group.addTask {
                            let message = bytes(number * 7)
                            try await expectEqual(channel.unary("/p.S/Unary", message: message), message)
                        }
                    }
                    try await group.waitForAll()
                }
            }
            #expect(transport.statistics.socketsOpened <= GRPCLimits.sharedConnectionsMax)
            #expect(server.statistics.grpcCalls == 5_000)
        }
    }

    @Test func statusesKeepCodeAndCharacters() async throws {
        let string = "no \"Dokument\" \u{1F525} 100%\r\nsecond line"
        let service: @Sendable (GRPCCall) -> Void = { call in
            call.unary { message in
                if !message.isEmpty { call.send(message) }
                call.finish(.aborted(string))
            }
        }
        try await withServer(grpc: service) { server, transport in
            let channel = channel(transport, port: server.port)
            #expect(await failure { try await channel.unary("/a/b", message: []) } == .aborted(string))
            #expect(await failure { try await channel.unary("/a/b", message: [1]) } == .aborted(string))
        }
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            let unknown = await failure { try await channel.unary("/p.S/No", message: []) }
            #expect(unknown == .unimplemented("no such method: /p.S/No"))
        }
    }

    /// Also when the server sends the status before the message is complete.
    @Test func refusalsKeepTheirStatus() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        for size in 0..<200 {
                            let status = await failure { try await channel.unary("/p.S/No", message: bytes(size)) }
                            #expect(status == .unimplemented("no such method: /p.S/No"))
                        }
                    }
                }
            }
        }
    }

    @Test func fieldsArrive() async throws {
        let service: @Sendable (GRPCCall) -> Void = { call in
            #expect(call.firstValue("authorization") == "Bearer owner")
            #expect(call.firstValue("x-empty") == "")
            #expect(call.firstValue("content-type") == "application/grpc")
            #expect(call.firstValue("te") == "trailers")
            #expect(call.firstValue("accept") == nil)
            #expect(call.firstValue("user-agent")?.hasPrefix("grpc-swift-hearth") == true)
            echoService(call)
        }
        try await withServer(grpc: service) { server, transport in
            let channel = channel(transport, port: server.port)
            let metadata = [HTTPField("authorization", "Bearer owner"), HTTPField("x-empty", "")]
            try await expectEqual(channel.unary("/p.S/Unary", metadata: metadata, message: [1]), [1])
            for bad in [HTTPField("a b", "1"), HTTPField("", "1"), HTTPField("a", "1\r\nb: 2"), HTTPField("a", "\0")] {
                let status = await failure { try await channel.unary("/p.S/Unary", metadata: [bad], message: [1]) }
                #expect(status?.code == .invalidArgument)
            }
        }
    }

    @Test func compressedMessagesAreRead() async throws {
        try await withServer(compressionThresholdBytes: 100) { server, transport in
            let channel = channel(transport, port: server.port)
            let message = [UInt8](repeating: 7, count: 5_000_000)
            let before = server.statistics.bytesSent
            try await expectEqual(channel.unary("/p.S/Unary", message: message), message)
            #expect(server.statistics.bytesSent - before < 50_000)
            let narrow = GRPCChannel(transport: transport, address: channel.address, messageBytesMax: 4_999_999)
            let status = await failure { try await narrow.unary("/p.S/Unary", message: message) }
            #expect(status?.code == .resourceExhausted)
        }
    }

    @Test func tooLargeMessagesAreRefused() async throws {
        try await withServer { server, transport in
            let address = ServerAddress(host: "127.0.0.1", port: server.port, security: .plaintext, proxy: .none)
            let channel = GRPCChannel(transport: transport, address: address, messageBytesMax: 1_000)
            try await expectEqual(channel.unary("/p.S/Unary", message: bytes(1_000)), bytes(1_000))
            let status = await failure { try await channel.unary("/p.S/Unary", message: bytes(1_001)) }
            #expect(status?.code == .resourceExhausted)
            try await expectEqual(channel.unary("/p.S/Unary", message: [1]), [1])
        }
    }

    @Test func theDeadlineEndsACall() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            try await expectEqual(
                channel.unary("/p.S/Unary", message: [1], timeoutMilliseconds: Patience.milliseconds), [1])
            let clock = ContinuousClock()
            let time = await clock.measure {
                let status = await failure {
                    try await channel.unary("/p.S/Silent", message: [1], timeoutMilliseconds: 100)
                }
                #expect(status?.code == .deadlineExceeded)
            }
            #expect(time > .milliseconds(90))
            #expect(transport.statistics.transfers == 0)
        }
    }

    @Test func theServerReceivesTheDeadline() async throws {
        let timeout = Box<String?>()
        let service: @Sendable (GRPCCall) -> Void = { call in
            timeout.set(call.firstValue("grpc-timeout"))
            echoService(call)
        }
        try await withServer(grpc: service) { server, transport in
            let channel = channel(transport, port: server.port)
            _ = try await channel.unary("/p.S/Unary", message: [1], timeoutMilliseconds: 4_321_000)
            try await expectEqual(timeout.value(), "4321000m")
        }
    }

    @Test func aCancelledTaskResetsItsCall() async throws {
        let began = Box<Bool>()
        let cancelled = Box<Bool>()
        let service: @Sendable (GRPCCall) -> Void = { call in
            guard call.path == "/a/b" else { return echoService(call) }
            call.onCancel = { cancelled.set(true) }
            began.set(true)
        }
        try await withServer(grpc: service) { server, transport in
            let channel = channel(transport, port: server.port)
            let task = Task { await failure { try await channel.unary("/a/b", message: [1]) } }
            try await expectEqual(began.value(), true)
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            try await expectEqual(cancelled.value(), true)
            try await expectEqual(channel.unary("/p.S/Unary", message: [2]), [2])
            #expect(transport.statistics.sockets == 1)
            // Cancelled before it began.
            let late = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await failure { try await channel.unary("/p.S/Silent", message: [1]) }
            }
            #expect(await late.value?.code == .cancelled)
        }
    }

    /// Other calls on the connection continue, and the reset is sent nevertheless.
    @Test func aCancelledCallSparesItsNeighbours() async throws {
        let began = Box<Bool>()
        let cancelled = Box<Bool>()
        let held = Box<GRPCCall>()
        let service: @Sendable (GRPCCall) -> Void = { call in
            switch call.path {
            case "/a/held": call.unary { _ in held.set(call) }
            case "/a/cancelled":
                call.onCancel = { cancelled.set(true) }
                began.set(true)
            default: echoService(call)
            }
        }
        try await withServer(grpc: service) { server, transport in
            let channel = channel(transport, port: server.port)
            async let answer = channel.unary("/a/held", message: [1])
            let call = try await held.value()
            let task = Task { await failure { try await channel.unary("/a/cancelled", message: [1]) } }
            try await expectEqual(began.value(), true)
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            try await expectEqual(cancelled.value(), true)
            call.loop.execute {
                call.send([9])
                call.finish(.ok)
            }
            try await expectEqual(answer, [9])
            #expect(transport.statistics.socketsOpened == 1)
        }
    }
}
