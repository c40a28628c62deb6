import HearthConcurrency
import HearthModel
import HearthNetwork

/// Sends the waiting messages of a client as fast as the client reads them. At most one piece of a large message is in
/// memory: a worker reads the next one when the output has capacity again.
///
/// `@unchecked Sendable`: belongs to the loop.
final class RealtimeSender: @unchecked Sendable {
    private static let pieceBytes: Int64 = 64 << 10

    let outbox: RealtimeOutbox
    /// The owner. Jobs of workers refer to this object and may outlive the owner.
    private weak var output: (any RealtimeOutput)?
    private let readers: WorkerGroup
    private var requester: Requester
    private let loop: EventLoop
    private var hasCapacity = true
    private var sending: (message: LargeMessage, position: Int64)?
    private var isReading = false
    private var isProceeding = false
    private var isClosed = false

    init(
        _ output: any RealtimeOutput, _ style: PushStyle, for requester: Requester, _ service: RealtimeService
    ) {
        self.output = output
        self.requester = requester
        loop = output.loop
        readers = service.pool.group(.short)
        outbox = RealtimeOutbox(style, for: requester, service, on: output.loop)
        outbox.onReady = { [weak self] in self?.proceed() }
    }

    /// Whether all messages are written to the output, and the output has capacity.
    var isIdle: Bool { hasCapacity && !isBusy }
    private var isBusy: Bool { sending != nil || !outbox.isEmpty }
    /// Whether a large message is being sent.
    var hasLarge: Bool { sending != nil || outbox.hasLarge }

    func belongs(to requester: Requester) {
        self.requester = requester
        if !outbox.belongs(to: requester) { output?.sendingFailed() }
    }

    func send(_ string: [UInt8]) {
        if isIdle { return hasCapacity = output?.write(string) ?? false }
        if !outbox.add(string) { output?.sendingFailed() }
    }

    func send(_ message: LargeMessage) {
        outbox.add(message)
        proceed()
    }

    /// False when the client must receive all data after it has read the waiting messages.
    func send(_ push: RealtimePush, tag: Int64?) -> Bool {
        if isIdle, !push.isLarge {
            hasCapacity = output?.write(push, tag: tag) ?? false
            return true
        }
        guard outbox.add(push, tag: tag) else { return false }
        proceed()
        return true
    }

    /// The output has capacity again.
    func becameWritable() {
        hasCapacity = true
        proceed()
    }

    private func proceed() {
        if isProceeding || isClosed { return }
        isProceeding = true
        var hasSent = false
        while !isClosed, hasCapacity, !isReading {
            if let (message, position) = sending {
                if position < message.body.file.count {
                    read(message, position)
                } else {
                    sending = nil
                    hasCapacity = output?.end(message) ?? false
                    hasSent = true
                }
            } else {
                guard let next = outbox.first else { break }
                write(next)
                hasSent = true
            }
        }
        isProceeding = false
        if hasSent, !isClosed { output?.hasSentSome() }
    }

    private func write(_ next: RealtimeOutbox.Message) {
        outbox.removeFirst()
        switch next {
        case .small(let string): hasCapacity = output?.write(string) ?? false
        case .push(let push, let tag): hasCapacity = output?.write(push, tag: tag) ?? false
        case .large(let message):
            sending = (message, 0)
            hasCapacity = output?.begin(message) ?? false
        case .unwritten: break
        }
    }

    private func read(_ message: LargeMessage, _ position: Int64) {
        let file = message.body.file
        let range = position..<min(position + Self.pieceBytes, file.count)
        isReading = true
        sending?.position = range.upperBound
        readers.run(for: requester, refused: { [self] in arrived(.failure($0)) }) { [self] in
            arrived(Result { () throws(Status) in try file.read(range) })
        }
    }

    private func arrived(_ piece: Result<[UInt8], Status>) {
        loop.execute { [self] in
            isReading = false
            if isClosed { return }
            switch piece {
            case .success(let bytes):
                hasCapacity = output?.write(piece: bytes) ?? false
                proceed()
            case .failure: output?.sendingFailed()
            }
        }
    }

    /// Writes the small messages to the output, whether it has capacity or not.
    /// - Returns: false when a large message is left.
    func finish() -> Bool {
        if sending != nil { return false }
        while let next = outbox.first {
            if case .large = next { return false }
            write(next)
        }
        return outbox.isEmpty
    }

    func close() {
        isClosed = true
        sending = nil
        outbox.close()
    }
}
