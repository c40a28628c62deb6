import HearthModel
import HearthNetwork

/// What a client of HTTP/2 sends that keeps to nothing. The server echoes what it understands, must stay alive whatever
/// comes, in whichever pieces, and must hold nothing when the connection is closed.
package enum RawTraffic {
    /// - Parameter input: one byte selects the size of the pieces and one the space for output; the rest is sent behind the
    ///   preface and an empty SETTINGS frame.
    package static func run(_ input: [UInt8]) throws {
        let choices = Choices(seed: 0)
        let pieceBytes = [1, 2, 9, 64, 1_000, 1 << 20][Int(input.first ?? 0) % 6]
        let outputBytes = [1, 100, 20_000, 1 << 20][Int(input.dropFirst().first ?? 0) % 4]
        let there = SimulatedPipe(capacity: 1 << 20)
        let back = SimulatedPipe(capacity: outputBytes)
        var nanoseconds: UInt64 = 1_000_000_000
        let handler = EchoHandler()
        let server = try SimulatedServer(
            configuration: ServerConfiguration(limits: limits), http: handler, grpc: handler
        ) {
            nanoseconds
        }
        let end = SimulatedEnd(input: there, output: back, pace: .all, choices)
        let bytes = preface + input.dropFirst(2)
        server.loop.simulate {
            server.start()
            server.accept(end)
            for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
                guard !end.isClosed else { break }
                Array(bytes[start..<min(bytes.count, start + pieceBytes)]).withUnsafeBytes { there.put($0) }
                nanoseconds += 1_000_000
                tick(server, end, back)
            }
            there.isFinished = true
            // Longer than the time for which a connection lingers.
            for _ in 0..<ticksMax where server.statistics.connectionsOpen > 0 {
                nanoseconds += 1_000_000
                tick(server, end, back)
            }
        }
        let statistics = server.statistics
        guard statistics.connectionsOpen == 0, statistics.streamsOpen == 0, server.held == SimulatedServer.Held() else {
            throw TrafficFailure("the server still holds something: \(server.held), \(statistics)")
        }
    }

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
    private static let ticksMax = 5_000

    private static var limits: NetworkLimits {
        var limits = NetworkLimits()
        // Small, so that short inputs exceed them.
        limits.headBytesMax = 1_000
        limits.headFieldsMax = 20
        limits.bodyBytesMax = 5_000
        limits.messageBytesMax = 2_000
        limits.concurrentStreamsMax = 10
        limits.answerHighWaterBytes = 1_000
        limits.answerLowWaterBytes = 100
        limits.resetsBurstMax = 5
        limits.controlFramesBurstMax = 30
        return limits
    }

    private static func tick(_ server: SimulatedServer, _ end: SimulatedEnd, _ back: SimulatedPipe) {
        server.loop.simulateTick { end.report() }
        withUnsafeTemporaryAllocation(byteCount: max(1, back.count), alignment: 1) { buffer in
            if let base = buffer.baseAddress { back.take(back.count, to: base) }
        }
    }

    /// `@unchecked Sendable`: it has no state.
    private final class EchoHandler: HTTPHandler, GRPCHandler, @unchecked Sendable {
        func begin(_ exchange: HTTPExchange) {
            if exchange.head.path == "/whole" {
                return exchange.collectBody(limitBytes: 3_000) { result in
                    switch result {
                    case .success(let body): exchange.respond(status: 200, headers: [], body: body)
                    case .failure(let status):
                        exchange.respond(status: 400, headers: [], body: Array(status.message.utf8))
                    }
                }
            }
            exchange.start(status: 200, headers: [])
            exchange.onBody = { [unowned exchange] in exchange.write(Array($0)) }
            exchange.onEnd = { [unowned exchange] in exchange.end(trailers: [HTTPHeader("x-end", "yes")]) }
        }

        func begin(_ call: GRPCCall) {
            call.onMessage = { [unowned call] in call.send($0) }
            call.onHalfClose = { [unowned call] in call.finish(.ok) }
        }
    }
}
