import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthWire
import Synchronization

@testable import HearthHost
@testable import HearthFirestoreServer

/// A client that sends arbitrary requests. Belongs to the loop, except its received responses.
final class StreamSiteClient: StreamCall, @unchecked Sendable {
    let loop: EventLoop
    let format = MessageFormat.protobuf
    let identity: Identity
    let requester = Requester(account: 1, connection: 1, isAdministrator: false)
    let onceValues: [String] = []
    let triggersValues: [String] = []
    let cancellation = Cancellation()
    var onMessage: (([UInt8]) -> Void)?
    var onHalfClose: (() -> Void)?
    var onFault: ((Status) -> Void)?
    var onCancel: (() -> Void)?
    var onWritable: (() -> Void)?
    private var isPaused = false
    private var hasCapacity = true
    private var held = Queue<[UInt8]>()
    private let state = Mutex<(received: [[UInt8]], end: Status?)>(([], nil))

    init(_ loop: EventLoop, as identity: Identity = .owner) {
        self.loop = loop
        self.identity = identity
    }

    var received: [[UInt8]] { state.withLock { $0.received } }
    var end: Status? { state.withLock { $0.end } }
    var isFinished: Bool { end != nil }

    func send(_ message: [UInt8]) -> Bool {
        state.withLock { $0.received.append(message) }
        return hasCapacity
    }

    func finish(_ status: Status) {
        state.withLock { $0.end = $0.end ?? status }
        (onMessage, onHalfClose, onFault, onCancel, onWritable) = (nil, nil, nil, nil, nil)
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        guard isPaused else { return }
        isPaused = false
        loop.execute { [self] in
            while !isPaused, let message = held.popFirst() { onMessage?(message) }
        }
    }

    /// Sends a request, which waits here while the stream has paused reading.
    func say(_ message: some WireMessage & Sendable) {
        let bytes = message.protobuf()
        loop.execute { [self] in if isPaused { held.append(bytes) } else { onMessage?(bytes) } }
    }

    func take(_ takes: Bool) {
        loop.execute { [self] in
            hasCapacity = takes
            if takes { onWritable?() }
        }
    }

    /// Its next data cannot be parsed.
    func garble() {
        loop.execute { [self] in onFault?(.internalError("garbled")) }
    }

    func leave() {
        loop.execute { [self] in
            cancellation.cancel()
            let onCancel = onCancel
            finish(Status(.cancelled, ""))
            onCancel?()
        }
    }

    /// Waits until the loop has handled earlier requests.
    func settle() async {
        await withCheckedContinuation { continuation in loop.execute { continuation.resume() } }
    }
}

/// A service over memory, with a loop and a client.
final class StreamSite {
    static let name = DatabaseName(project: "p", database: "(default)")

    let loop: EventLoop
    let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
    let memory: ServerMemory
    let registry = DatabaseRegistry(provider: MemoryStoreProvider())
    let service: FirestoreService
    let client: StreamSiteClient

    init(_ memory: ServerMemory = ServerMemory()) throws {
        loop = try EventLoop()
        try loop.start()
        self.memory = memory
        client = StreamSiteClient(loop)
        service = FirestoreService(
            registry: registry, pool: pool, memory: memory, options: FirestoreService.Options(),
            authenticator: Authenticator(isEmulator: true, project: "p"), access: AccessControl(isEmulator: true))
        _ = try registry.database(Self.name)
    }

    /// Jobs that the workers for large requests have begun.
    var jobs: Int { pool.statistics.short.waits.reduce(0, +) }

    /// A client of another connection, with a Write stream.
    func another(as identity: Identity = .owner) -> StreamSiteClient {
        let client = StreamSiteClient(loop, as: identity)
        loop.execute { [service] in _ = WriteStream(client, service) }
        return client
    }

    func write() { loop.execute { [client, service] in _ = WriteStream(client, service) } }
    func listen() { loop.execute { [client, service] in _ = ListenStream(client, service) } }

    func stop() async {
        client.leave()
        await client.settle()
        pool.stop()
        loop.stopAndJoin()
        registry.close()
    }
}
