import HearthLoadClient
import HearthModel
import HearthNetwork

/// One connection of a run that uses HTTP/1.1 or Redis' protocol: the same code for Hearth, nginx and Redis, so that
/// the client's cost is the same for all. `@unchecked Sendable`: belongs to the loop's thread.
final class PlainLane: @unchecked Sendable {
    private let client: TCPClient
    private let run: LoadRun
    private let framing: any AnswerFraming.Type
    private let message: LoadGenerator.MessageMaker
    private var random: SeededRandom
    private let streams: Int
    private var count: LoadCount
    /// The send times of unanswered requests, in order.
    private var sentAt: [UInt64] = []
    /// The start of an incomplete response.
    private var part: [UInt8] = []
    private var isFinished = false

    init(
        _ client: TCPClient, _ run: LoadRun, _ framing: any AnswerFraming.Type, streams: Int, random: SeededRandom,
        _ message: @escaping LoadGenerator.MessageMaker
    ) {
        self.client = client
        self.run = run
        self.framing = framing
        self.message = message
        self.random = random
        self.streams = streams
        count = LoadCount(run)
    }

    func start() {
        client.onBytes = { [self] bytes in received(bytes) }
        client.onClose = { [self] in
            if !isFinished { run.fail("The server has closed a connection.") }
            finish()
        }
        for _ in 0..<streams { next() }
    }

    private func next() {
        guard let number = run.next() else {
            if sentAt.isEmpty { finish() }
            return
        }
        client.send(message(number, &random))
        sentAt.append(EventLoop.monotonicNanoseconds())
    }

    private func finish() {
        if isFinished { return }
        isFinished = true
        run.finished(count.result)
        client.close()
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        if part.isEmpty {
            part += bytes.dropFirst(take(bytes))
            return
        }
        part += bytes
        let taken = part.withUnsafeBytes { take($0) }
        part.removeFirst(taken)
    }

    /// - Returns: the bytes of the whole answers that were there.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        var start = 0
        while start < bytes.count, !isFinished {
            guard let answer = framing.first(UnsafeRawBufferPointer(rebasing: bytes[start...])) else { return start }
            start += answer.sizeBytes
            guard !sentAt.isEmpty else {
                run.fail("The server sent an answer without a request.")
                finish()
                return bytes.count
            }
            count.answered(answer.failure, sentAt: sentAt.removeFirst())
            next()
        }
        return start
    }
}

/// The framing of responses.
protocol AnswerFraming: Sendable {
    /// The response at the beginning of some bytes; nil when it is incomplete.
    static func first(_ bytes: UnsafeRawBufferPointer) -> FramedAnswer?
}

struct FramedAnswer: Equatable {
    var sizeBytes: Int
    /// The error of the response.
    var failure: String?
}

/// HTTP/1.1 with one request at a time. Source: RFC 9112.
enum HTTP1Framing: AnswerFraming {
    static func first(_ bytes: UnsafeRawBufferPointer) -> FramedAnswer? {
        var lineStart = 0
        var lengthBytes: Int?
        var failure: String?
        while let end = bytes[lineStart...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = UnsafeRawBufferPointer(rebasing: bytes[lineStart..<end])
            if lineStart == 0, !isSuccess(line) { failure = String(decoding: line, as: UTF8.self) }
            // No Content: without a body, and without a length.
            if lineStart == 0, line.count > 12, line[9..<12].elementsEqual("204".utf8) { lengthBytes = 0 }
            lineStart = end + 1
            if line.count <= 1 {
                // Without a length it is chunked. No response follows it, so the last received chunk is its last.
                let size = lengthBytes.map { lineStart + $0 } ?? bytes.count
                if lengthBytes == nil, !bytes.suffix(5).elementsEqual("0\r\n\r\n".utf8) { return nil }
                return size <= bytes.count ? FramedAnswer(sizeBytes: size, failure: failure) : nil
            }
            lengthBytes = lengthBytes ?? contentLength(line)
        }
        return nil
    }

    private static func isSuccess(_ line: UnsafeRawBufferPointer) -> Bool {
        line.count > 12 && line[9] == UInt8(ascii: "2")
    }

    private static let field = Array("content-length:".utf8)

    private static func contentLength(_ line: UnsafeRawBufferPointer) -> Int? {
        guard line.count > field.count, line[7] == UInt8(ascii: "-") else { return nil }
        for (index, byte) in field.enumerated() where line[index] | 0x20 != byte { return nil }
        return line.dropFirst(field.count).reduce(0) { length, byte in
            (0x30...0x39).contains(byte) ? length * 10 + Int(byte & 15) : length
        }
    }
}

/// Redis: simple and bulk strings, and errors. Source: "Redis serialization protocol specification".
enum RedisFraming: AnswerFraming {
    static func first(_ bytes: UnsafeRawBufferPointer) -> FramedAnswer? {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let string = { String(decoding: bytes[..<(end - 1)], as: UTF8.self) }
        switch bytes[0] {
        case UInt8(ascii: "+"), UInt8(ascii: ":"): return FramedAnswer(sizeBytes: end + 1)
        case UInt8(ascii: "$"):
            guard let length = Int(string().dropFirst()), length >= 0 else {
                return FramedAnswer(sizeBytes: end + 1, failure: "There is no such key.")
            }
            let size = end + 1 + length + 2
            return size <= bytes.count ? FramedAnswer(sizeBytes: size) : nil
        default: return FramedAnswer(sizeBytes: end + 1, failure: string())
        }
    }
}
