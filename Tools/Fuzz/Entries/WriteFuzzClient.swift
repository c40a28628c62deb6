import HearthDocuments
import HearthFirestoreServer
import HearthModel
import HearthNetwork
import HearthWire

/// Expects a response to each request, in order. `@unchecked Sendable`: belongs to the loop.
final class WriteFuzzClient: StreamFuzzClient, @unchecked Sendable {
    private weak var stream: WriteStream?
    private var answers = 0
    private var lastTime = Timestamp(microseconds: 0)

    override init(loop: EventLoop, _ service: FirestoreService, _ database: Database) {
        super.init(loop: loop, service, database)
        onLoop { [self] in
            let stream = WriteStream(self, service)
            self.stream = stream
        }
    }

    override var isIdle: Bool { stream?.isIdle ?? true }

    override func received(_ bytes: [UInt8]) {
        let message: WriteResponse
        do throws(Status) {
            message = try WriteResponse(json: bytes, at: "")
        } catch { preconditionFailure("a message can't be read: \(error)") }
        answers += 1
        precondition(answers <= requests, "more answers than requests")
        precondition(message.streamId.isEmpty == (answers > 1), "the first answer names the stream, and no other")
        precondition(!message.streamToken.isEmpty, "an answer without a token")
        token = Self.base64(message.streamToken)
        if answers > 1 {
            guard let time = try? message.commitTime?.timestamp() else { preconditionFailure("no commit time") }
            precondition(time >= lastTime, "time goes back")
            lastTime = time
        }
    }

    func check() {
        onLoop { [self] in
            if isFinished { return }
            precondition(!isFaulted, "a stream goes on without input")
            precondition(answers == requests, "a request has no answer")
        }
    }
}
