import HearthLoadClient
import HearthNetwork

/// Requests of HTTP/1.1 on one connection, some of them pipelined.
final class HTTP1TrafficClient: TrafficClient {
    private let client: TCPClient
    /// Less than `NetworkLimits.pipelinedBytesMax`.
    private static let drainedBytesMax = 200 << 10
    private let record: TrafficRecord
    private let choices: Choices
    private var reader = HTTP1AnswerReader()
    /// Those whose head is sent, in order.
    private var open: [Exchange] = []
    private var closesAfterAnswer = false
    private var closingReason = "the server closed"
    private var sentBytes = 0
    /// The last of the open ones is being sent.
    private var isSending = false
    private var isChunked = false

    init(_ client: TCPClient, _ record: TrafficRecord, _ choices: Choices) {
        self.client = client
        self.record = record
        self.choices = choices
        client.onBytes = { [unowned self] in received($0) }
        client.onClose = { [unowned self] in closed() }
    }

    var isClosed: Bool { client.isClosed }
    var openCount: Int { open.count }

    func begin() {
        guard !isClosed, !isSending, !closesAfterAnswer, open.count < (choices.chance(50) ? 1 : 6) else { return }
        let exchange = record.newExchange(choices, canBeCall: false)
        open.append(exchange)
        isChunked = choices.chance(40)
        var head = "\(exchange.request.isEmpty ? "GET" : "POST") /\(exchange.number) HTTP/1.1\r\nhost: h\r\n"
        if !exchange.request.isEmpty {
            head += isChunked ? "transfer-encoding: chunked\r\n" : "content-length: \(exchange.requestSize)\r\n"
            isSending = true
            sentBytes = 0
        }
        client.send(Array((head + "\r\n").utf8))
        if choices.chance(70) { sendAll() }
    }

    private func sendPart() {
        guard isSending, let exchange = open.last else { return }
        guard exchange.sentParts < exchange.request.count else {
            isSending = false
            if isChunked { client.send(Array("0\r\n\r\n".utf8)) }
            return
        }
        let length = exchange.request[exchange.sentParts]
        exchange.sentParts += 1
        guard length > 0 else { return }
        if isChunked { client.send(Array("\(String(length, radix: 16))\r\n".utf8)) }
        client.send(Content.bytes(exchange.requestKey, from: sentBytes, count: length))
        if isChunked { client.send(Array("\r\n".utf8)) }
        sentBytes += length
    }

    private func sendAll() { while isSending { sendPart() } }

    func act() { sendPart() }

    func hurry() { sendAll() }

    func close() {
        for exchange in open { exchange.mayFail = true }
        closeSocket("the client wanted to")
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        do throws(TrafficFailure) {
            var position = 0
            while let event = try reader.next(bytes, &position) {
                guard let exchange = open.first else { return record.fail("an answer without a request") }
                switch event {
                case .head(let status, let fields): receivedHead(status, fields, exchange)
                case .body(let range):
                    record.answered(UnsafeRawBufferPointer(rebasing: bytes[range]), of: exchange)
                    if let position = exchange.cancelsAfter, exchange.answerBytes >= position { return close() }
                case .end(let trailers): receivedEnd(trailers, exchange)
                }
                guard !isClosed else { return }
            }
        } catch { record.fail("\(error.description) (\(open.first?.description ?? "no request"))") }
    }

    private func receivedHead(
        _ status: Int, _ fields: [(name: String, value: String)], _ exchange: Exchange
    ) {
        func value(_ name: String) -> String { fields.first { $0.name == name }?.value ?? "" }
        if status != 200 { record.fail("status \(status): \(exchange.description)") }
        if value("x-head") != Content.string(exchange.answerKey, count: exchange.headBytes) {
            record.fail("the answer's head is wrong: \(exchange.description)")
        }
        guard value("connection") == "close" else { return }
        closesAfterAnswer = true
        // The later requests are not answered.
        for later in open.dropFirst() { later.mayFail = true }
    }

    private func receivedEnd(_ trailers: [(name: String, value: String)], _ exchange: Exchange) {
        let trailer = trailers.first { $0.name == "x-trailer" }?.value ?? ""
        if !exchange.isWhole, trailer != exchange.trailer {
            record.fail("the trailer has \(trailer.utf8.count) bytes: \(exchange.description)")
        }
        if open.count == 1, isSending {
            // The answer came before the end of the request, which nobody needs.
            isSending = false
            closesAfterAnswer = true
        }
        open.removeFirst()
        if exchange.beginning != .atEnd, exchange.requestSize > HTTP1TrafficClient.drainedBytesMax {
            // The server reads only so much of a body that nobody needs; then the connection ends.
            closesAfterAnswer = true
            for later in open { later.mayFail = true }
        }
        record.completed(exchange)
        if closesAfterAnswer { closeSocket("after the answer to \(exchange.number)") }
    }

    private func closeSocket(_ reason: String) {
        closingReason = reason
        client.close()
    }

    private func closed() {
        let open = open
        self.open = []
        isSending = false
        // What the server aborts ends with the connection, and so do the requests behind it. The answers before it are sent,
        // but the server's close resets the connection of a client that continues to send.
        let mayAllFail = open.contains(where: \.mayFail)
        for exchange in open {
            if mayAllFail { exchange.mayFail = true }
            record.failed(exchange, "HTTP/1.1: \(closingReason)")
        }
    }
}
