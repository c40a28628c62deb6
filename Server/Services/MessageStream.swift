import HearthModel
import HearthNetwork

/// Where the messages of a streamed answer come from. Used by one thread at a time.
protocol MessageSource: AnyObject {
    /// Whether each message costs little, so that the event loop may make them itself.
    var isLight: Bool { get }
    /// The next message; nil at the end.
    func next() throws(Status) -> [UInt8]?
    /// Lets go of what can't be held for long while a client doesn't read; `next` goes on where it was.
    func suspend()
}

/// Sends the messages of a source, as fast as the client takes them and no faster.
///
/// Light sources are asked on the call's loop, some messages a turn; others on a worker's thread, a batch at a time, and
/// never while an earlier batch waits for the client. `@unchecked Sendable`: the source is used by the loop or by one
/// worker, never by both; `isAsking` says whose turn it is, and belongs to the loop.
final class MessageStream: @unchecked Sendable {
    private static let batchMessagesMax = 256
    private static let batchBytesMax = 512 << 10
    /// How long a client may take nothing before its source lets go of its snapshot.
    private static let patienceMilliseconds = 1000

    private let call: any ServiceCall
    private let source: any MessageSource
    private let pool: WorkerPool
    private let completion: (Status) -> Void
    private var isAsking = false
    private var suspension: Timer?

    private struct Batch: Sendable {
        var messages: [[UInt8]] = []
        var isLast = false
        var failure: Status?
    }

    /// - Parameter completion: told on the loop when everything is sent or the source has failed; nil: ends the call.
    init(
        _ source: any MessageSource, to call: any ServiceCall, pool: WorkerPool, completion: ((Status) -> Void)? = nil
    ) {
        self.source = source
        self.call = call
        self.pool = pool
        self.completion = completion ?? { call.finish($0) }
    }

    /// Sends everything. To be called on the loop.
    func start() {
        call.onWritable = { [weak self] in self?.proceed() }
        proceed()
    }

    private func proceed() {
        guard !isAsking, !call.isFinished else { return }
        suspension?.cancel()
        suspension = nil
        isAsking = true
        if source.isLight {
            deliver(makeBatch())
        } else {
            let refused: @Sendable (Status) -> Void = { [self] status in
                call.loop.execute { [self] in deliver(Batch(failure: status)) }
            }
            pool.run(.long, for: call.requester, cancellation: call.cancellation, refused: refused) { [self] in
                let batch = makeBatch()
                call.loop.execute { [self] in deliver(batch) }
            }
        }
    }

    private func makeBatch() -> Batch {
        var batch = Batch()
        var bytes = 0
        do throws(Status) {
            while batch.messages.count < Self.batchMessagesMax, bytes < Self.batchBytesMax {
                guard let message = try source.next() else {
                    batch.isLast = true
                    break
                }
                bytes += message.count
                batch.messages.append(message)
            }
        } catch {
            batch.failure = error
        }
        return batch
    }

    private func deliver(_ batch: Batch) {
        isAsking = false
        var hasRoom = true
        for message in batch.messages { hasRoom = call.send(message) }
        if let failure = batch.failure { return end(failure) }
        if batch.isLast { return end(.ok) }
        if call.isFinished { return end(.ok) }
        if hasRoom {
            call.loop.execute { [self] in proceed() }
        } else {
            // `onWritable` goes on; it holds this object only weakly, the timer keeps it while it waits.
            waitForClient()
        }
    }

    private func waitForClient() {
        call.onWritable = { [self] in proceed() }
        suspension = call.loop.schedule(afterMilliseconds: Self.patienceMilliseconds) { [weak self] in
            guard let self, !self.isAsking else { return }
            self.source.suspend()
        }
    }

    private func end(_ status: Status) {
        suspension?.cancel()
        call.onWritable = nil
        completion(status)
    }
}
