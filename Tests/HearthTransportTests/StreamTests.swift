import Glibc
import HearthModel
import HearthNetwork
import HearthTestSupport
import HearthTransport
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct StreamTests {
    @Test func tenThousandEchoesOneAtATime() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            let recorder = StreamRecorder()
            nonisolated(unsafe) var stream: GRPCStream?
            let opened = channel.openStream("/p.S/Bidi") { event in
                recorder.take(event)
                guard case .message(let message) = event, let stream else { return }
                let number = Int(String(decoding: message, as: UTF8.self)) ?? -1
                if number < 10_000 { stream.send(Array("\(number + 1)".utf8)) } else { stream.finish() }
            }
            stream = opened
            await recorder.wait { $0.openedCount == 1 }
            opened.send(Array("1".utf8))
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.trailers.firstValue("x-end") == "1")
            #expect(end.messages == (1...10_000).map { Array("\($0)".utf8) })
            #expect(transport.statistics.sockets == 0)
            stream = nil
        }
    }

    @Test func allAtOnceKeepsItsOrder() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            let recorder = StreamRecorder()
            let stream = channel.open("/p.S/Bidi", recorder)
            let messages = (0..<10_000).map { bytes($0 % 3_000) }
            for message in messages { stream.send(message) }
            stream.finish()
            stream.send([1])
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages == messages)
            #expect(end.openedCount == 1)
            #expect(stream.queuedBytes == 0)
        }
    }

    @Test func manyStreamsAtOnce() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        let recorder = StreamRecorder()
                        let stream = channel.open("/p.S/Bidi", recorder)
                        for count in 0..<20 { stream.send(bytes(number * count)) }
                        await recorder.wait { $0.messages.count == 20 }
                        stream.finish()
                        let end = await recorder.end()
                        #expect(end.status == .ok)
                        #expect(end.messages == (0..<20).map { bytes(number * $0) })
                    }
                }
                try await group.waitForAll()
            }
            #expect(transport.statistics.sockets == 0)
        }
    }

    /// Servers send their head with the first message only, and that may wait for a request message.
    @Test func aStreamOpensBeforeTheServerResponds() async throws {
        try await withServer { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port).open("/p.S/Silent", recorder)
            let now = await recorder.wait { $0.openedCount == 1 }
            #expect(now.messages.isEmpty && now.status == nil)
            stream.cancel()
        }
    }

    @Test func bigMessagesBothWays() async throws {
        try await withServer { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port).open("/p.S/Bidi", recorder)
            let messages = [bytes(3 << 20), [], bytes(5 << 20), bytes(1)]
            for message in messages { stream.send(message) }
            stream.finish()
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages == messages)
        }
    }

    /// The server ends the stream while the client could still send: the status must not wait for the client.
    @Test func theServerMayEndFirst() async throws {
        let service: @Sendable (GRPCCall) -> Void = { call in
            call.onMessage = { message in
                if !message.isEmpty { call.send(message) }
                call.finish(Status(.permissionDenied, "enough"))
            }
        }
        try await withServer(grpc: service) { server, transport in
            let channel = channel(transport, port: server.port)
            for message in [[], [1], bytes(100_000)] as [[UInt8]] {
                let recorder = StreamRecorder()
                let stream = channel.open("/a/b", recorder)
                stream.send(message)
                let end = await recorder.end()
                #expect(end.status == Status(.permissionDenied, "enough"))
                #expect(end.messages == (message.isEmpty ? [] : [message]))
                stream.send([2])
                #expect(stream.queuedBytes == 0)
            }
            #expect(transport.statistics.transfers == 0)
            #expect(transport.statistics.sockets == 0)
        }
        // Immediately, without a message.
        try await withServer(grpc: { $0.finish(.notFound("nothing")) }) { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port).open("/a/b", recorder)
            #expect(await recorder.end().status == .notFound("nothing"))
            stream.finish()
        }
    }

    @Test func cancelResetsAndSilences() async throws {
        let cancelled = Box<Bool>()
        let service: @Sendable (GRPCCall) -> Void = { call in
            call.onMessage = { call.send($0) }
            call.onCancel = { cancelled.set(true) }
        }
        try await withServer(grpc: service) { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port).open("/a/b", recorder)
            stream.send([1])
            await recorder.wait { $0.messages.count == 1 }
            stream.cancel()
            stream.cancel()
            try await expectEqual(cancelled.value(), true)
            #expect(recorder.now.status == nil)
            #expect(transport.statistics.sockets == 0)
        }
    }

    @Test func cancelWithinAnEventIsTheLast() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            let received = Box<Int>()
            nonisolated(unsafe) var stream: GRPCStream?
            let opened = channel.openStream("/p.S/Bidi") { event in
                guard case .message = event else { return }
                received.set((received.current ?? 0) + 1)
                stream?.cancel()
            }
            stream = opened
            for _ in 0..<100 { opened.send([1]) }
            _ = try await received.value()
            // Another stream's whole lifetime is enough time for a second event.
            try await expectEqual(channel.collect("/p.S/Split", message: bytes(100)).count, 100)
            #expect(received.current == 1)
            stream = nil
        }
    }

    @Test func aPausedConsumerStopsTheServer() async throws {
        let sent = Box<Int>()
        let service: @Sendable (GRPCCall) -> Void = { call in
            guard call.path == "/a/b" else { return echoService(call) }
            nonisolated(unsafe) var count = 0
            let produce = { @Sendable in
                while count < 2_000 {
                    count += 1
                    if !call.send([UInt8](repeating: UInt8(truncatingIfNeeded: count), count: 50_000)) {
                        return sent.set(count)
                    }
                }
                call.finish(.ok)
            }
            call.onWritable = produce
            call.onMessage = { _ in produce() }
        }
        try await withServer(grpc: service) { server, transport in
            let channel = channel(transport, port: server.port)
            let recorder = StreamRecorder()
            let stream = channel.openPausing(recorder, at: [3])
            await recorder.wait { $0.messages.count >= 3 }
            // A server that makes progress keeps the client's thread busy.
            #expect(await becomesIdle(transport, port: server.port))
            let messages = recorder.now.messages.count
            #expect(try await sent.value() < 2_000, "100 MB of messages can't be in buffers")
            // Other streams are not blocked.
            try await expectEqual(channel.unary("/p.S/Unary", message: [1]), [1])
            #expect(recorder.now.messages.count == messages)
            stream.resumeReceiving()
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages.count == 2_000)
            #expect(end.messages.enumerated().allSatisfy { $1.first == UInt8(truncatingIfNeeded: $0 + 1) })
        }
    }

    @Test func aSlowServerShowsInTheQueue() async throws {
        let held = Box<GRPCCall>()
        let service: @Sendable (GRPCCall) -> Void = { call in
            nonisolated(unsafe) var received = 0
            call.onMessage = { received += $0.count }
            call.onHalfClose = {
                call.send(Array("\(received)".utf8))
                call.finish(.ok)
            }
            call.pauseReading()
            held.set(call)
        }
        try await withServer(grpc: service) { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port).open("/a/b", recorder)
            for _ in 0..<200 { stream.send(bytes(100_000)) }
            let call = try await held.value()
            #expect(await becomesIdle(transport, port: server.port))
            #expect(stream.queuedBytes > 5_000_000)
            #expect(recorder.now.status == nil)
            call.loop.execute { call.resumeReading() }
            stream.finish()
            let end = await recorder.end()
            #expect(end.status == .ok)
            #expect(end.messages == [Array("20000000".utf8)])
            #expect(stream.queuedBytes == 0)
        }
    }

    @Test func aStreamHasADeadline() async throws {
        try await withServer { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port).open("/p.S/Silent", recorder, timeoutMilliseconds: 100)
            #expect(await recorder.end().status?.code == .deadlineExceeded)
            #expect(stream.queuedBytes == 0)
        }
    }

    @Test func shutDownEndsEverything() async throws {
        try await withServer { server, transport in
            let channel = channel(transport, port: server.port)
            let recorder = StreamRecorder()
            let stream = channel.open("/p.S/Silent", recorder)
            await recorder.wait { $0.openedCount == 1 }
            let task = Task { await failure { try await channel.unary("/p.S/Silent", message: [1]) } }
            while transport.statistics.transfers < 2 {
                try Task.checkCancellation()
                await Task.yield()
            }
            try await blocking { transport.shutDown() }
            #expect(recorder.now.status?.code == .cancelled)
            #expect(await task.value?.code == .cancelled)
            #expect(transport.statistics.sockets == 0)
            #expect(transport.statistics.transfers == 0)
            stream.send([1])
            stream.cancel()
            #expect(await failure { try await channel.unary("/p.S/Unary", message: [1]) }?.code == .cancelled)
            transport.shutDown()
        }
    }

    @Test func anIdleStreamCostsNothing() async throws {
        try await withServer { server, transport in
            let recorder = StreamRecorder()
            let stream = channel(transport, port: server.port).open("/p.S/Bidi", recorder)
            stream.send([1])
            await recorder.wait { $0.messages.count == 1 }
            #expect(await becomesIdle(transport, port: server.port))
            stream.send([2])
            await recorder.wait { $0.messages.count == 2 }
            stream.cancel()
        }
    }
}
