import HearthModel
import HearthNetwork

/// The server's side of each exchange: it checks what arrives, and answers as the model has decided.
///
/// `@unchecked Sendable`: used by the simulation's thread.
final class PlannedHandler: HTTPHandler, GRPCHandler, @unchecked Sendable {
    private let record: TrafficRecord

    init(_ record: TrafficRecord) { self.record = record }

    private func exchange(_ path: String) -> Exchange? {
        path.split(separator: "/").last.flatMap { Int($0) }.flatMap { record.exchanges[$0] }
    }

    // MARK: HTTP

    func begin(_ transport: HTTPExchange) {
        if transport.head.path == "/socket" { return echo(transport) }
        guard let exchange = exchange(transport.head.path) else {
            record.fail("a request for \(transport.head.path), which nobody sent")
            return transport.respond(status: 404, headers: [], body: [])
        }
        transport.onBody = { [unowned transport, record] bytes in
            record.received(bytes, of: exchange)
            if exchange.readingPauseMilliseconds > 0, !exchange.isPaused {
                exchange.isPaused = true
                transport.pauseReading()
                // The timer may be all that has it.
                transport.loop.schedule(afterMilliseconds: exchange.readingPauseMilliseconds) {
                    [transport = transport as HTTPExchange] in transport.resumeReading()
                }
            }
            if exchange.beginning == .atFirstBytes { Self.answer(transport, exchange) }
        }
        transport.onEnd = { [unowned transport, record] in
            record.receivedEnd(of: exchange)
            Self.answer(transport, exchange)
        }
        if exchange.beginning == .atHead { Self.answer(transport, exchange) }
    }

    private static func answer(_ transport: HTTPExchange, _ exchange: Exchange) {
        guard !exchange.hasBegun else { return }
        exchange.hasBegun = true
        var headers = [HTTPHeader("content-type", "application/octet-stream")]
        if exchange.headBytes > 0 {
            headers.append(HTTPHeader("x-head", Content.string(exchange.answerKey, count: exchange.headBytes)))
        }
        if exchange.isWhole {
            let body = Content.bytes(exchange.answerKey, count: exchange.answerSize)
            return transport.respond(status: 200, headers: headers, body: body)
        }
        transport.start(status: 200, headers: headers)
        write(transport, exchange, part: 0, offset: 0)
    }

    private static func write(_ transport: HTTPExchange, _ exchange: Exchange, part: Int, offset: Int) {
        var (part, offset) = (part, offset)
        while part < exchange.answer.count {
            if exchange.abortsBefore == part { return transport.abort() }
            let length = exchange.answer[part]
            let hasSpace = transport.write(Content.bytes(exchange.answerKey, from: offset, count: length))
            guard !transport.isFinished else { return }
            part += 1
            offset += length
            if !hasSpace, exchange.isPatient {
                transport.onWritable = { [unowned transport, part, offset] in
                    transport.onWritable = nil
                    write(transport, exchange, part: part, offset: offset)
                }
                return
            }
            if exchange.pauseMilliseconds > 0 {
                transport.loop.schedule(afterMilliseconds: exchange.pauseMilliseconds) { [part, offset] in
                    write(transport, exchange, part: part, offset: offset)
                }
                return
            }
        }
        if exchange.abortsBefore == part { return transport.abort() }
        transport.end(trailers: exchange.trailerBytes > 0 ? [HTTPHeader("x-trailer", exchange.trailer)] : [])
    }

    /// A WebSocket on which every message comes back.
    private func echo(_ transport: HTTPExchange) {
        let options = WebSocketOptions(compressionThresholdBytes: record.compressionThresholdBytes)
        guard let channel = transport.upgradeToWebSocket(options) else { return }
        channel.onText = { [unowned channel] in channel.send(string: $0) }
        channel.onBinary = { [unowned channel] in channel.send(binary: $0) }
    }

    // MARK: gRPC

    func begin(_ call: GRPCCall) {
        guard let exchange = exchange(call.path) else {
            record.fail("a call of \(call.path), which nobody sent")
            return call.finish(.unimplemented(call.path))
        }
        call.onMessage = { [unowned call, record] message in
            guard exchange.messages < exchange.request.count, message.count == exchange.request[exchange.messages]
            else {
                record.fail("message \(exchange.messages) has \(message.count) bytes: \(exchange.description)")
                return
            }
            exchange.messages += 1
            message.withUnsafeBytes { record.received($0, of: exchange) }
            if exchange.readingPauseMilliseconds > 0, !exchange.isPaused {
                exchange.isPaused = true
                call.pauseReading()
                call.loop.schedule(afterMilliseconds: exchange.readingPauseMilliseconds) {
                    [call = call as GRPCCall] in call.resumeReading()
                }
            }
            if exchange.beginning == .atFirstBytes { Self.answer(call, exchange) }
        }
        call.onHalfClose = { [unowned call, record] in
            record.receivedEnd(of: exchange)
            Self.answer(call, exchange)
        }
        if exchange.beginning == .atHead { Self.answer(call, exchange) }
    }

    private static func answer(_ call: GRPCCall, _ exchange: Exchange) {
        guard !exchange.hasBegun else { return }
        exchange.hasBegun = true
        send(call, exchange, part: 0, offset: 0)
    }

    private static func send(_ call: GRPCCall, _ exchange: Exchange, part: Int, offset: Int) {
        var (part, offset) = (part, offset)
        while part < exchange.answer.count {
            if exchange.abortsBefore == part { return call.finish(.unavailable("aborted")) }
            let length = exchange.answer[part]
            let hasSpace = call.send(Content.bytes(exchange.answerKey, from: offset, count: length))
            guard !call.isFinished else { return }
            part += 1
            offset += length
            if !hasSpace, exchange.isPatient {
                call.onWritable = { [unowned call, part, offset] in
                    call.onWritable = nil
                    send(call, exchange, part: part, offset: offset)
                }
                return
            }
            if exchange.pauseMilliseconds > 0 {
                call.loop.schedule(afterMilliseconds: exchange.pauseMilliseconds) { [part, offset] in
                    send(call, exchange, part: part, offset: offset)
                }
                return
            }
        }
        if exchange.abortsBefore == part { return call.finish(.unavailable("aborted")) }
        guard exchange.trailerBytes > 0 else { return call.finish(.ok) }
        call.finish(Status(.aborted, exchange.statusMessage), trailers: [HTTPHeader("x-trailer", exchange.trailer)])
    }
}
