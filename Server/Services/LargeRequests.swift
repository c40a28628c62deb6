import HearthModel
import HearthNetwork
import HearthWire
import Synchronization

/// Large requests are decoded by a worker: ten megabytes of tiny values take long, and a loop has others to serve.
struct LargeRequests: Sendable {
    /// Above this a request costs more than the hop to another thread.
    static let sizeBytesMin = 128 << 10
    /// Bytes of requests that wait for a worker or are with one; decoded they can be many times as large.
    static let waitingBytesMax = 48 << 20

    private let pool: WorkerPool
    private let waiting = Waiting()

    private final class Waiting: Sendable {
        let bytes = Atomic<Int>(0)
    }

    init(pool: WorkerPool) { self.pool = pool }

    /// Runs `body` on a worker, which answers through the call that it is given.
    func run(
        sizeBytes: Int, _ call: any ServiceCall, _ body: @escaping @Sendable (any ServiceCall) throws(Status) -> Void
    ) throws(Status) {
        let waiting = waiting
        guard waiting.bytes.add(sizeBytes, ordering: .relaxed).newValue <= Self.waitingBytesMax else {
            waiting.bytes.subtract(sizeBytes, ordering: .relaxed)
            throw .unavailable("The server works on too many large requests.")
        }
        pool.run {
            if !call.cancellation.isCancelled {
                let distant = DistantCall(call)
                do throws(Status) { try body(distant) } catch { distant.finish(error) }
            }
            if waiting.bytes.subtract(sizeBytes, ordering: .relaxed).newValue == 0 { ProcessMemory.giveBackSoon() }
        }
    }
}

/// A call for a thread that isn't its loop's: what it says goes over to the loop. There it is the call itself, so that
/// what a worker has begun goes on as usual.
private final class DistantCall: ServiceCall {
    private let call: any ServiceCall
    let loop: EventLoop
    let format: MessageFormat
    let identity: Identity
    let requester: Requester
    let cancellation: Cancellation

    init(_ call: any ServiceCall) {
        self.call = call
        loop = call.loop
        format = call.format
        identity = call.identity
        requester = call.requester
        cancellation = call.cancellation
    }

    var isFinished: Bool { loop.isCurrent ? call.isFinished : cancellation.isCancelled }

    var onWritable: (() -> Void)? {
        get { call.onWritable }
        set {
            precondition(loop.isCurrent, "a stream belongs to its loop")
            call.onWritable = newValue
        }
    }

    func send(_ message: [UInt8]) -> Bool {
        if loop.isCurrent { return call.send(message) }
        loop.execute { [call] in call.send(message) }
        return true
    }

    func finish(_ status: Status) {
        call.onLoop { [call] in call.finish(status) }
    }
}
