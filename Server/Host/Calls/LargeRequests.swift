import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthWire

/// Workers decode large requests: ten megabytes of tiny values take long, and a loop must serve other connections.
///
/// Each request of 2 KiB or more waits until there is memory for its decoded form. Meanwhile its bytes count as received
/// bytes. The same holds for smaller requests of the Realtime Database whose decoded form counts.
package struct LargeRequests: Sendable {
    /// Above this size a request costs more than the hop to another thread.
    package static let sizeBytesMin = 32 << 10
    /// Below this size a request is not counted while it is handled.
    static let countedBytesMin = 2 << 10

    package static let tooMany = Status.resourceExhausted("The server holds too many large requests of yours.")

    package let memory: ServerMemory
    private let pool: WorkerPool

    package init(pool: WorkerPool, memory: ServerMemory) {
        self.pool = pool
        self.memory = memory
    }

    /// Runs `body`, which responds through the call that it receives: on a worker for a large request, on the loop for
    /// others.
    /// - Throws: RESOURCE_EXHAUSTED, or the error of `body` when it runs immediately.
    package func run(_ message: [UInt8], _ call: any ServiceCall, _ body: @escaping Body) throws(Status) {
        if message.count < Self.countedBytesMin { return try body(message, call) }
        if message.count >= Self.sizeBytesMin { return runOnWorker(message, call, body) }
        let parsed = Self.parsedSize(of: message, isJSON: call.format.isJSON)
        if let share = memory.working.takeNow(parsed, for: call.requester) {
            return try body(message, CountedCall(call, share, message.count, memory.received))
        }
        let held = memory.received.reservation(for: call.requester)
        guard held.grow(by: message.count) else { throw Self.tooMany }
        memory.working.take(parsed, for: call.requester) { [memory] share in
            call.loop.execute {
                held.resize(to: 0)
                if call.isFinished { return }
                let counted = CountedCall(call, share, message.count, memory.received)
                do throws(Status) { try body(message, counted) } catch { counted.finish(error) }
            }
        }
    }

    private func runOnWorker(_ message: [UInt8], _ call: any ServiceCall, _ body: @escaping Body) {
        run(message, isJSON: call.format.isJSON, for: call.requester, cancellation: call.cancellation) { status in
            call.onLoop { call.finish(status) }
        } body: { share in
            let distant = CountedCall(call, share, message.count, memory.received)
            do throws(Status) { try body(message, distant) } catch { distant.finish(error) }
        }
    }

    package typealias Body = @Sendable (_ message: [UInt8], _ call: any ServiceCall) throws(Status) -> Void

    /// Runs `body` on a worker when there is memory for the decoded message.
    /// - Parameters:
    ///   - refused: called instead of `body`, from any thread.
    ///   - body: receives the memory, which counts as used until its last reference is released.
    package func run(
        _ message: [UInt8], isJSON: Bool, for requester: Requester, cancellation: Cancellation?,
        refused: @escaping @Sendable (Status) -> Void, body: @escaping @Sendable (WorkingShare) -> Void
    ) {
        let held = memory.received.reservation(for: requester)
        guard held.grow(by: message.count) else {
            return refused(Self.tooMany)
        }
        // Counting the elements takes long, too.
        pool.run(.short, for: requester, cancellation: cancellation, cost: Self.cost(message), refused: refused) {
            let parsed = Self.parsedSize(of: message, isJSON: isJSON)
            memory.working.take(parsed, for: requester) { share in
                pool.run(.short, for: requester, cancellation: cancellation, cost: Self.cost(message), refused: refused)
                {
                    body(share)
                    held.resize(to: 0)
                    ProcessMemory.giveBackSoon()
                }
            }
        }
    }

    /// Runs `body` on a loop when there is memory for the decoded request: immediately if it is free.
    package func take(
        _ bytes: Int, for requester: Requester, on loop: EventLoop,
        _ body: @escaping @Sendable (WorkingShare) -> Void
    ) {
        if loop.isCurrent, let share = memory.working.takeNow(bytes, for: requester) { return body(share) }
        memory.working.take(bytes, for: requester) { share in loop.execute { body(share) } }
    }

    private static func parsedSize(of message: [UInt8], isJSON: Bool) -> Int {
        isJSON ? ParsedSize.ofJSON(message) : ParsedSize.ofProtobuf(message)
    }

    /// In units of the largest request that a loop decodes.
    private static func cost(_ message: [UInt8]) -> Int { 1 + message.count / sizeBytesMin }
}

/// A call that holds the memory of its request, for any thread. `@unchecked Sendable`: what changes belongs to the call's
/// loop. Calls from another thread are forwarded to the call's
/// loop. There the original call is used, so that work that a worker has begun continues normally.
///
/// All of the memory is held until the response begins, or until the call waits for a worker or a long read: then the
/// same size counts as received bytes, which keep no other request waiting. During a streamed response, the size of the
/// encoded request is held, as a part of the received bytes.
private final class CountedCall: ServiceCall, @unchecked Sendable {
    private let call: any ServiceCall
    private let share: WorkingShare
    private let held: MemoryReservation
    private let sizeBytes: Int
    private var hasBegun = false
    let loop: EventLoop
    let format: MessageFormat
    let identity: Identity
    let requester: Requester
    let onceValues: [String]
    let triggersValues: [String]
    let cancellation: Cancellation

    init(_ call: any ServiceCall, _ share: WorkingShare, _ sizeBytes: Int, _ received: MemoryBudget) {
        self.call = call
        self.share = share
        self.sizeBytes = sizeBytes
        held = received.reservation(for: call.requester)
        loop = call.loop
        format = call.format
        identity = call.identity
        requester = call.requester
        onceValues = call.onceValues
        triggersValues = call.triggersValues
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
        if loop.isCurrent { return sendHere(message) }
        loop.execute { [self] in _ = sendHere(message) }
        return true
    }

    private func sendHere(_ message: [UInt8]) -> Bool {
        if !hasBegun {
            hasBegun = true
            guard held.resize(to: sizeBytes) else {
                finish(LargeRequests.tooMany)
                return false
            }
            share.end()
        }
        return call.send(message)
    }

    func postpone() throws(Status) {
        precondition(loop.isCurrent, "a reservation belongs to its call's loop")
        let bytes = share.bytes
        if bytes == 0 { return }
        guard held.grow(by: bytes) else { throw LargeRequests.tooMany }
        share.end()
    }

    /// The response releases the memory, so nothing of it must be counted any more.
    func respond(_ message: [UInt8]) {
        call.onLoop { [self] in
            call.respond(message)
            held.resize(to: 0)
            share.end()
        }
    }

    func finish(_ status: Status) {
        call.onLoop { [self] in
            call.finish(status)
            held.resize(to: 0)
            share.end()
        }
    }
}
