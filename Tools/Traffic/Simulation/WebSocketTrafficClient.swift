import HearthLoadClient
import HearthNetwork
import HearthWebSocket

/// A WebSocket whose messages come back in their order.
final class WebSocketTrafficClient: TrafficClient {
    private struct Message {
        var key: Int
        var size: Int
        var isText: Bool
    }

    private let client: TCPClient
    private let record: TrafficRecord
    private let choices: Choices
    private var reader = HTTP1AnswerReader()
    private var codec: WebSocketConnection?
    private var expected: [Message] = []
    private var expectedPongs: [[UInt8]] = []
    /// Encoded output, of which parts are sent.
    private var unsent: [UInt8] = []
    private var unsentStart = 0
    private var isClosing = false
    private var nextKey: Int

    init(_ client: TCPClient, _ record: TrafficRecord, _ choices: Choices) {
        self.client = client
        self.record = record
        self.choices = choices
        nextKey = choices.below(1 << 20)
        client.onBytes = { [unowned self] in received($0) }
        client.onClose = { [unowned self] in closed() }
        var head = "GET /socket HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        head += "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        if choices.chance(50) { head += "sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n" }
        client.send(Array((head + "\r\n").utf8))
    }

    var isClosed: Bool { client.isClosed }
    var openCount: Int { isClosed ? 0 : expected.count + expectedPongs.count + (codec == nil ? 1 : 0) }

    func begin() {
        guard !isClosed, !isClosing, let codec, expected.count < 50 else { return }
        nextKey += 1
        let message = Message(key: nextKey, size: choices.size(atMost: 300 << 10), isText: choices.chance(50))
        let content = Content.bytes(message.key, count: message.size, isText: message.isText)
        expected.append(message)
        send(message.isText ? codec.send(string: content) : codec.send(binary: content))
    }

    private func send(_ bytes: [UInt8]) {
        unsent.append(contentsOf: bytes)
        if choices.chance(60) { sendPart(unsent.count - unsentStart) }
    }

    /// A frame may be cut anywhere.
    private func sendPart(_ length: Int) {
        let end = min(unsent.count, unsentStart + length)
        guard end > unsentStart else { return }
        client.send(Array(unsent[unsentStart..<end]))
        unsentStart = end
        if unsentStart == unsent.count {
            unsent = []
            unsentStart = 0
        }
    }

    func act() {
        guard !isClosed, !isClosing, let codec else { return }
        switch choices.below(30) {
        case 0 where expectedPongs.count < 20:
            let payload = Content.bytes(nextKey, count: choices.below(126))
            expectedPongs.append(payload)
            send(codec.ping(payload))
        case 1...20: sendPart(choices.size(atMost: 64 << 10))
        default: break
        }
    }

    func hurry() { sendPart(unsent.count) }

    func close() {
        isClosing = true
        client.close()
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        do throws(TrafficFailure) {
            var position = 0
            if codec == nil {
                while codec == nil, let event = try reader.next(bytes, &position) {
                    guard case .head(let status, let fields) = event, status == 101 else {
                        return record.fail("the upgrade was refused: \(event)")
                    }
                    let deflates = fields.contains { $0.name == "sec-websocket-extensions" }
                    codec = WebSocketConnection(
                        role: .client,
                        limits: WebSocketLimits(compressionThresholdBytes: choices.pick([0, 100, 5_000])),
                        deflate: deflates ? WebSocketDeflate() : nil)
                }
            }
            guard let codec else { return }
            while position < bytes.count {
                let event: WebSocketConnection.Event?
                do throws(WebSocketFailure) { event = try codec.next(bytes, &position) } catch {
                    throw TrafficFailure("broken frames: \(error)")
                }
                guard let event else { break }
                received(event)
            }
        } catch { record.fail(error.description) }
    }

    private func received(_ event: WebSocketConnection.Event) {
        switch event {
        case .string(let bytes): received(bytes, isText: true)
        case .binary(let bytes): received(bytes, isText: false)
        case .pong(let payload):
            guard !expectedPongs.isEmpty, expectedPongs.removeFirst() == payload else {
                return record.fail("a pong that was not asked for")
            }
        case .ping(let payload): if let codec { client.send(codec.pong(payload)) }
        case .close(let code, let reason): record.fail("the server closed: \(code.map { "\($0)" } ?? "-") \(reason)")
        }
    }

    private func received(_ bytes: [UInt8], isText: Bool) {
        guard !expected.isEmpty else { return record.fail("a message that was not sent") }
        let message = expected.removeFirst()
        let isEqual = bytes.withUnsafeBytes {
            Content.firstDifference(message.key, from: 0, $0, isText: isText) == nil
        }
        guard message.isText == isText, message.size == bytes.count, isEqual else {
            return record.fail("message \(message) came back with \(bytes.count) bytes, equal: \(isEqual)")
        }
        record.completedMessage()
    }

    private func closed() {
        if !isClosing { record.fail("the server ended a WebSocket with \(openCount) open messages") }
    }
}
