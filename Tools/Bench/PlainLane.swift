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
