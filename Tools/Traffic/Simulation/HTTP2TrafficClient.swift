import HearthLoadClient
import HearthModel
import HearthNetwork

/// Requests and gRPC calls on one connection of HTTP/2.
final class HTTP2TrafficClient: TrafficClient {
    /// An exchange and what the client may do with it.
    private final class Open {
        let exchange: Exchange
        var send: (Int) -> Void = { _ in }
        var end: () -> Void = {}
        var cancel: () -> Void = {}
        var pause: () -> Void = {}
        var resume: () -> Void = {}
        var sentBytes = 0
        var isEnded = false
        var isPaused = false
        var messages = 0
        var slot = 0

        init(_ exchange: Exchange) { self.exchange = exchange }
    }

    let client: HTTP2Client
    private let grpc: GRPCClient
    private let record: TrafficRecord
    private let choices: Choices
    private var open: [Open] = []
    private var isHurrying = false
    /// Above it the server would call it an abuse.
    private var controlFramesLeft = 1_000
    private var endsLeft = 300

    init(_ client: HTTP2Client, _ record: TrafficRecord, _ choices: Choices) {
        self.client = client
        grpc = GRPCClient(client)
        self.record = record
        self.choices = choices
    }

    var isClosed: Bool { client.isClosed }
    var openCount: Int { open.count }

    func begin() {
        guard !isClosed, !client.hasReceivedGoAway else { return }
        // Several heads, and with luck several answers, in one flush.
        for _ in 0..<(choices.isOne(in: 6) ? choices.between(2...30) : 1) where open.count < 90 {
            let exchange = record.newExchange(choices, canBeCall: true)
            if exchange.cancelsAfter != nil || exchange.abortsBefore != nil { endsLeft -= 1 }
            let entry = Open(exchange)
            entry.slot = open.count
            open.append(entry)
            if exchange.kind == .call { beginCall(entry) } else { beginRequest(entry) }
            if choices.chance(70) { sendAll(entry) }
        }
    }

    private func beginRequest(_ entry: Open) {
        let exchange = entry.exchange
        let hasBody = !exchange.request.isEmpty
        let stream = client.open(
            method: hasBody ? "POST" : "GET", path: "/\(exchange.number)", headers: [], hasBody: hasBody)
        stream.onHead = { [record] status, headers in
            let head = headers.first { $0.name == "x-head" }?.value ?? ""
            if status != 200 { record.fail("status \(status): \(exchange.description)") }
            if head != Content.string(exchange.answerKey, count: exchange.headBytes) {
                record.fail("the answer's head is wrong: \(exchange.description)")
            }
        }
        stream.onBody = { [unowned self, unowned entry] in answered($0, entry) }
        stream.onEnd = { [unowned self, unowned entry] trailers in
            let trailer = trailers.first { $0.name == "x-trailer" }?.value ?? ""
            if !exchange.isWhole, trailer != exchange.trailer {
                record.fail("the trailer has \(trailer.utf8.count) bytes: \(exchange.description)")
            }
            finish(entry)
            record.completed(exchange)
        }
        stream.onFailure = { [unowned self, unowned entry] status in
            finish(entry)
            record.failed(exchange, status.message)
        }
        entry.send = { [unowned entry] length in
            stream.write(Content.bytes(exchange.requestKey, from: entry.sentBytes, count: length))
        }
        entry.end = { stream.end() }
        entry.cancel = { stream.cancel() }
        entry.pause = { stream.pauseReading() }
        entry.resume = { stream.resumeReading() }
    }

    private func beginCall(_ entry: Open) {
        let exchange = entry.exchange
        let call = grpc.open(path: "/traffic.Traffic/\(exchange.number)", compresses: choices.isOne(in: 4))
        call.onMessage = { [unowned self, unowned entry] message in
            guard entry.messages < exchange.answer.count, message.count == exchange.answer[entry.messages] else {
                return record.fail("a message of \(message.count) bytes: \(exchange.description)")
            }
            entry.messages += 1
            message.withUnsafeBytes { answered($0, entry) }
        }
        call.onFinish = { [unowned self, unowned entry] status, trailers in
            let messages = entry.messages
            finish(entry)
            let wanted = exchange.trailerBytes > 0 ? Status(.aborted, exchange.statusMessage) : .ok
            guard status == wanted else { return record.failed(exchange, "\(status.code) \(status.message)") }
            if (trailers.first { $0.name == "x-trailer" }?.value ?? "") != exchange.trailer {
                record.fail("the trailer is wrong: \(exchange.description)")
            }
            if messages != exchange.answer.count { record.fail("messages are missing: \(exchange.description)") }
            record.completed(exchange)
        }
        entry.send = { [unowned entry] length in
            call.send(Content.bytes(exchange.requestKey, from: entry.sentBytes, count: length))
        }
        entry.end = { call.halfClose() }
        entry.cancel = { call.cancel() }
        entry.pause = { call.pauseReading() }
        entry.resume = { call.resumeReading() }
    }

    private func answered(_ bytes: UnsafeRawBufferPointer, _ entry: Open) {
        record.answered(bytes, of: entry.exchange)
        if let position = entry.exchange.cancelsAfter, entry.exchange.answerBytes >= position, endsLeft > 0 {
            cancel(entry)
        }
    }

    private func cancel(_ entry: Open) {
        guard !entry.exchange.isFinished else { return }
        finish(entry)
        record.cancelled(entry.exchange)
        entry.cancel()
    }

    private func finish(_ entry: Open) {
        guard entry.slot < open.count, open[entry.slot] === entry else { return }
        let last = open.removeLast()
        guard last !== entry else { return }
        open[entry.slot] = last
        last.slot = entry.slot
    }

    private func sendPart(_ entry: Open) {
        let exchange = entry.exchange
        guard !exchange.request.isEmpty || exchange.kind == .call, !entry.isEnded else { return }
        guard exchange.sentParts < exchange.request.count else {
            entry.isEnded = true
            return entry.end()
        }
        let length = exchange.request[exchange.sentParts]
        entry.send(length)
        entry.sentBytes += length
        exchange.sentParts += 1
    }

    private func sendAll(_ entry: Open) {
        guard !entry.exchange.request.isEmpty || entry.exchange.kind == .call else { return }
        while !entry.isEnded { sendPart(entry) }
    }

    func act() {
        guard !isClosed else { return }
        if choices.isOne(in: 12), controlFramesLeft > 0 { return actOnConnection() }
        guard !open.isEmpty else { return }
        let entry = choices.pick(open)
        switch choices.below(20) {
        case 0 where endsLeft > 0:
            endsLeft -= 1
            cancel(entry)
        case 1...3:
            entry.isPaused = true
            entry.pause()
        case 4...7 where entry.isPaused:
            entry.isPaused = false
            entry.resume()
        case 8: sendAll(entry)
        default: sendPart(entry)
        }
    }

    private func actOnConnection() {
        controlFramesLeft -= 1
        switch choices.below(5) {
        case 0: client.ping()
        case 1: client.changeStreamWindow(choices.chance(30) ? 0 : choices.size(atMost: 2 << 20))
        case 2: client.changeConnectionWindow(65_535 + choices.size(atMost: 4 << 20))
        case 3:
            client.changeSettings(
                headerTableBytes: choices.pick([0, 100, 4_096, 65_536]),
                frameBytesMax: choices.pick([16_384, 16_385, 65_536, 1 << 20]))
        default: client.changeStreamWindow(65_535)
        }
    }

    func hurry() {
        guard !isClosed else { return }
        if !isHurrying {
            isHurrying = true
            client.changeStreamWindow(1 << 20)
            client.changeConnectionWindow(8 << 20)
        }
        for entry in open {
            entry.resume()
            sendAll(entry)
        }
    }

    func close() {
        for entry in open { entry.exchange.mayFail = true }
        client.close()
    }
}
