@testable import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthTestSupport
import Synchronization
import Testing

/// Unary echo at /p.S/Unary, bidirectional echo at /p.S/Bidi; other methods are unknown.
@Sendable func echoService(_ call: GRPCCall) {
    switch call.path {
    case "/p.S/Unary":
        call.unary { message in
            call.send(message)
            call.finish(.ok)
        }
    case "/p.S/Bidi":
        call.onMessage = { call.send($0) }
        call.onHalfClose = { call.finish(.ok, trailers: [HTTPHeader("x-end", "1")]) }
    default: call.finish(.unimplemented("no such method: \(call.path)"))
    }
}

@Suite struct GRPCServerTests {
    @Test func unaryCallsSucceed() async throws {
        try await withServer(grpc: echoService) { server in
            let client = try await connect(server)
            for count in [0, 1, 10, 1_000, 100_000, 10 << 20] {
                let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }
                let result = await call(client, "/p.S/Unary", messages: [message])
                #expect(result.status == .ok)
                #expect(result.messages == [message])
            }
            #expect(server.statistics.grpcCalls == 6)
        }
    }

    @Test func unknownMethodsAreUnimplemented() async throws {
        try await withServer(grpc: echoService) { server in
            let result = await call(try await connect(server), "/p.S/Nothing", messages: [[1]])
            #expect(result.status == .unimplemented("no such method: /p.S/Nothing"))
            #expect(result.trailers.firstValue("grpc-status") == "12")
        }
    }

    @Test func statusMessagesKeepTheirCharacters() async throws {
        let string = "no \"Dokument\" \u{1F525} 100%\r\nsecond line"
        try await withServer(grpc: { call in call.unary { _ in call.finish(.notFound(string)) } }) { server in
            let client = try await connect(server)
            #expect(await call(client, "/a/b", messages: [[1]]).status == .notFound(string))
        }
        let afterMessages: @Sendable (GRPCCall) -> Void = { call in
            call.send([1])
            call.finish(.aborted(string), trailers: [HTTPHeader("x-more", "v")])
            call.finish(.ok)
            #expect(!call.send([2]))
        }
        try await withServer(grpc: afterMessages) { server in
            let result = await call(try await connect(server), "/a/b", messages: [[1]])
            #expect(result.status == .aborted(string))
            #expect(result.messages == [[1]])
            #expect(result.trailers.firstValue("x-more") == "v")
        }
    }

    @Test func streamsOfMessagesKeepTheirOrder() async throws {
        try await withServer(grpc: echoService) { server in
            let messages = (0..<2_000).map { Array("\($0)".utf8) }
            let result = await call(try await connect(server), "/p.S/Bidi", messages: messages)
            #expect(result.status == .ok)
            #expect(result.messages == messages)
            #expect(result.trailers.firstValue("x-end") == "1")
        }
    }

    @Test func aMessageInPartsIsOneMessage() async throws {
        let handler: @Sendable (GRPCCall) -> Void = { call in
            call.sendParts([[1, 2], [], [3]])
            call.sendParts([])
            call.sendParts([[4]])
            call.finish(.ok)
        }
        try await withServer(grpc: handler) { server in
            let result = await call(try await connect(server), "/a/b", messages: [])
            #expect(result.messages == [[1, 2, 3], [], [4]])
        }
    }

    @Test func unaryRequiresExactlyOneMessage() async throws {
        try await withServer(grpc: echoService) { server in
            let client = try await connect(server)
            #expect(await call(client, "/p.S/Unary", messages: []).status.code == .invalidArgument)
            #expect(await call(client, "/p.S/Unary", messages: [[1], [2]]).status.code == .invalidArgument)
        }
    }

    @Test(arguments: [false, true])
    func compressesBothWays(compresses: Bool) async throws {
        try await withServer(compressionThresholdBytes: 100, grpc: echoService) { server in
            let client = try await connect(server)
            for count in [0, 10, 200_000] {
                let message = [UInt8](repeating: 65, count: count)
                let before = server.statistics.bytesSent
                let result = await call(client, "/p.S/Unary", messages: [message], compresses: compresses)
                #expect(result.status == .ok)
                #expect(result.messages == [message])
                #expect(server.statistics.bytesSent - before < 5_000)
            }
        }
    }

    @Test func rejectsUndecodableMessages() async throws {
        var limits = NetworkLimits()
        limits.messageBytesMax = 10_000
        try await withServer(limits: limits, grpc: echoService) { server in
            let client = try await connect(server)
            let unknown = await call(
                client, "/p.S/Unary", metadata: [HTTPHeader("grpc-encoding", "snappy")], messages: [[1]])
            #expect(unknown.status.code == .unimplemented)
            #expect(unknown.trailers.firstValue("grpc-accept-encoding") == "identity,gzip")
            let large = await call(client, "/p.S/Unary", messages: [[UInt8](repeating: 0, count: 10_001)])
            #expect(large.status.code == .resourceExhausted)
            let bomb = await call(
                client, "/p.S/Unary", messages: [[UInt8](repeating: 0, count: 1_000_000)], compresses: true)
            #expect(bomb.status.code == .resourceExhausted)
            let timeout = await call(
                client, "/p.S/Unary", metadata: [HTTPHeader("grpc-timeout", "soon")], messages: [[1]])
            #expect(timeout.status.code == .invalidArgument)
        }
    }

    @Test("a call's handler is notified of its end when the input can't be read")
    func brokenInputEndsTheHandlersCall() async throws {
        var limits = NetworkLimits()
        limits.messageBytesMax = 10_000
        let cancelled = Box<Bool>()
        let listening: @Sendable (GRPCCall) -> Void = { call in
            call.onMessage = { call.send($0) }
            call.onCancel = { cancelled.set(true) }
        }
        try await withServer(limits: limits, grpc: listening) { server in
            let client = try await connect(server)
            let result = await call(client, "/p.S/Listen", messages: [[1], [UInt8](repeating: 0, count: 10_001)])
            #expect(result.status.code == .resourceExhausted)
            #expect(cancelled.current == true)
        }
    }

    @Test("broken input is reported after the earlier messages, and waits for their answers")
    func brokenInputWaits() async throws {
        var limits = NetworkLimits()
        limits.messageBytesMax = 10_000
        let slow: @Sendable (GRPCCall) -> Void = { call in
            let fault = Box<Status>()
            call.onMessage = { message in
                call.loop.schedule(afterMilliseconds: 1) {
                    call.send(message)
                    if let fault = fault.current { call.finish(fault) }
                }
            }
            call.onFault = { fault.set($0) }
        }
        try await withServer(limits: limits, grpc: slow) { server in
            let client = try await connect(server)
            let result = await call(
                client, "/p.S/Write", messages: [[7], [UInt8](repeating: 0, count: 10_001), [8]])
            #expect(result.status.code == .resourceExhausted)
            #expect(result.messages == [[7]])
        }
    }

    @Test("decompressing a large message does not block other calls")
    func compressedMessagesAreSliced() async throws {
        let order = Mutex<[Int]>([])
        let noting: @Sendable (GRPCCall) -> Void = { call in
            call.unary { message in
                order.withLock { $0.append(message.count) }
                call.send([UInt8(message.count & 255)])
                call.finish(.ok)
            }
        }
        try await withServer(grpc: noting) { server in
            let client = try await connect(server)
            await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
                clientLoop.execute {
                    var open = 2
                    // Both are sent at the end of this tick, the large one first.
                    for count in [12 << 20, 3] {
                        let call = GRPCClient(client).open(path: "/p.S/Unary", compresses: true)
                        call.onFinish = { status, _ in
                            #expect(status == .ok)
                            open -= 1
                            if open == 0 { done.resume() }
                        }
                        call.send([UInt8](repeating: 0, count: count))
                        call.halfClose()
                    }
                }
            }
            #expect(order.withLock { $0 } == [3, 12 << 20])
        }
    }

    @Test func tooMuchMetadataIsResourceExhausted() async throws {
        var limits = NetworkLimits()
        limits.headFieldsMax = 20
        try await withServer(limits: limits, grpc: echoService) { server in
            let client = try await connect(server)
            let metadata = (0..<30).map { HTTPHeader("x-\($0)", "v") }
            let result = await call(client, "/p.S/Unary", metadata: metadata, messages: [[1]])
            #expect(result.status.code == .resourceExhausted)
            #expect(await call(client, "/p.S/Unary", messages: [[1]]).status == .ok)
        }
    }

    @Test func metadataIsReceived() async throws {
        let handler: @Sendable (GRPCCall) -> Void = { call in
            #expect(call.firstValue("authorization") == "Bearer owner")
            #expect(call.firstValue("nothing") == nil)
            #expect(call.metadata.firstValue("x-b") == "2")
            #expect(call.path == "/a/b")
            #expect(call.remoteAddress.hasPrefix("127.0.0.1:"))
            call.finish(.ok)
        }
        try await withServer(grpc: handler) { server in
            let metadata = [HTTPHeader("authorization", "Bearer owner"), HTTPHeader("x-b", "2")]
            let result = await call(try await connect(server), "/a/b", metadata: metadata, messages: [[1]])
            #expect(result.status == .ok)
            #expect(result.messages.isEmpty)
        }
    }

    @Test func theDeadlineEndsTheCall() async throws {
        let cancelled = Box<Bool>()
        let handler: @Sendable (GRPCCall) -> Void = { call in
            #expect(call.deadline != nil)
            call.onCancel = {
                #expect(call.isFinished)
                cancelled.set(true)
            }
        }
        try await withServer(grpc: handler) { server in
            let client = try await connect(server)
            let result = await call(client, "/a/b", messages: [[1]], timeoutMilliseconds: 20)
            #expect(result.status.code == .deadlineExceeded)
            #expect(try await cancelled.value())
        }
    }

    @Test func aCancelledCallIsNotifiedOnce() async throws {
        let began = Box<Bool>()
        let cancelled = Box<Int>()
        let handler: @Sendable (GRPCCall) -> Void = { call in
            nonisolated(unsafe) var count = 0
            call.onCancel = {
                count += 1
                cancelled.set(count)
                call.finish(.ok)
            }
            began.set(true)
        }
        try await withServer(grpc: handler) { server in
            let client = try await connect(server)
            let call = await onClientLoop { GRPCClient(client).open(path: "/a/b") }
            #expect(try await began.value())
            clientLoop.execute { call.cancel() }
            #expect(try await cancelled.value() == 1)
        }
    }

    @Test func aLostConnectionCancelsItsCalls() async throws {
        let began = Box<Bool>()
        let cancelled = Box<Bool>()
        let handler: @Sendable (GRPCCall) -> Void = { call in
            call.onCancel = { cancelled.set(true) }
            began.set(true)
        }
        try await withServer(grpc: handler) { server in
            let client = try await connect(server)
            _ = await onClientLoop { GRPCClient(client).open(path: "/a/b") }
            #expect(try await began.value())
            clientLoop.execute { client.close() }
            #expect(try await cancelled.value())
        }
    }

    @Test func anAnswerBeforeTheRequestIsCompleteEndsTheStream() async throws {
        try await withServer(grpc: { $0.finish(.ok) }) { server in
            let client = try await connect(server)
            let finished = Box<Status>()
            let call = await onClientLoop { () -> GRPCClientCall in
                let call = GRPCClient(client).open(path: "/a/b")
                call.onFinish = { status, _ in finished.set(status) }
                return call
            }
            #expect(try await finished.value() == .ok)
            clientLoop.execute { call.send([1]) }
            // The connection stays open.
            let again = await HearthNetworkTests.call(client, "/a/b", messages: [[1]])
            #expect(again.status == .ok)
        }
    }

    @Test func aSlowReaderStopsTheProducer() async throws {
        let firstPause = Box<Int>()
        let handler: @Sendable (GRPCCall) -> Void = { call in
            nonisolated(unsafe) var sent = 0
            let produce = { @Sendable in
                while sent < 1_000 {
                    sent += 1
                    if !call.send([UInt8](repeating: UInt8(truncatingIfNeeded: sent), count: 20_000)) {
                        firstPause.set(firstPause.current ?? sent)
                        return
                    }
                }
                call.finish(.ok)
            }
            call.onWritable = produce
            produce()
        }
        try await withServer(grpc: handler) { server in
            let client = try await connect(server) { $0.streamWindowBytes = 65_535 }
            let finished = Box<(Status, Int)>()
            let call = await onClientLoop { () -> GRPCClientCall in
                let call = GRPCClient(client).open(path: "/a/b")
                call.pauseReading()
                nonisolated(unsafe) var received = 0
                call.onMessage = {
                    received += 1
                    #expect($0.first == UInt8(truncatingIfNeeded: received))
                }
                call.onFinish = { status, _ in finished.set((status, received)) }
                call.halfClose()
                return call
            }
            #expect(try await firstPause.value() < 20)
            clientLoop.execute { call.resumeReading() }
            let (status, received) = try await finished.value()
            #expect(status == .ok)
            #expect(received == 1_000)
        }
    }

    @Test func aPausedHandlerGetsOneMessageAtATime() async throws {
        let handler: @Sendable (GRPCCall) -> Void = { call in
            nonisolated(unsafe) var isBusy = false
            nonisolated(unsafe) var count = 0
            call.onMessage = { message in
                #expect(!isBusy)
                #expect(Int(message[0]) == count % 256)
                isBusy = true
                count += 1
                call.pauseReading()
                // Simulates storing each message first.
                call.loop.execute {
                    isBusy = false
                    call.resumeReading()
                }
            }
            call.onHalfClose = {
                #expect(!isBusy)
                call.send(Array("\(count)".utf8))
                call.finish(.ok)
            }
        }
        try await withServer(grpc: handler) { server in
            let messages = (0..<500).map { [UInt8](repeating: UInt8(truncatingIfNeeded: $0), count: 10_000) }
            let result = await call(try await connect(server), "/a/b", messages: messages)
            #expect(result.status == .ok)
            #expect(result.messages == [Array("500".utf8)])
        }
    }

    @Test func grpcOverHTTP1IsRefused() async throws {
        try await withServer { server in
            let connection = try RawConnection(port: server.port)
            connection.send(
                "POST /a/b HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n")
            #expect(try await connection.readStringToEnd().hasPrefix("HTTP/1.1 505 "))
        }
    }
}
