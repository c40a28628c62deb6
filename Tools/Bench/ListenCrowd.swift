import HearthLoadClient
import HearthToolSupport
import Glibc
import HearthModel
import HearthNetwork
import HearthWire
import Synchronization

/// Listeners of a server, each a stream with one target, and their events.
///
/// `@unchecked Sendable`: members outside of `state` belong to the loop.
final class ListenCrowd: @unchecked Sendable {
    /// One message of a stream, as far as it is decoded.
    enum Event {
        /// A document that matches.
        case change
        /// A consistent snapshot: all earlier changes are complete.
        case boundary
        case other
    }

    private struct State {
        var opening = 0
        var isClosing = false
        var failure: String?
    }

    let loop: EventLoop
    private let generator: LoadGenerator
    private let state = Mutex(State())
    private var clients: [HTTP2Client] = []
    private var calls: [GRPCClientCall] = []

    /// Called on the loop, with the listener's number.
    var onEvent: ((Int, Event) -> Void)?
    /// Bytes of all messages.
    private(set) var receivedBytes = 0
    /// The longest time between a listener's request and its first snapshot.
    private(set) var openingSeconds = 0.0
    /// The newest boundary's resume token.
    private(set) var token: [UInt8] = []

    private static let openingMax = 64

    init(_ instance: FirestoreInstance) throws(ToolFailure) {
        generator = instance.generator("Listen", connections: 1, streams: 1)
        loop = try ToolLoop.start()
    }

    // MARK: Listeners

    /// Opens listeners, and returns when each has its first snapshot.
    /// - Parameter request: the first message of a listener.
    func open(
        connections: Int, each streams: Int, _ request: @escaping @Sendable (Int) -> [UInt8]
    ) throws(ToolFailure) {
        let filesMax = FileLimit.raise()
        if connections + 200 > filesMax {
            throw ToolFailure(
                .failed, "\(connections) connections need more open files than the system allows, \(filesMax).")
        }
        for connection in 0..<connections {
            try wait(openingMax: max(0, Self.openingMax - streams))
            state.withLock { $0.opening += streams }
            connect { [self] client in
                for stream in 0..<streams {
                    let number = connection * streams + stream
                    listen(client, number, request(number))
                }
            }
        }
        try wait(openingMax: 0)
    }

    private func connect(_ done: @escaping @Sendable (HTTP2Client) -> Void) {
        let configuration = HTTP2Client.Configuration(host: generator.host, port: generator.port)
        HTTP2Client.connect(configuration, on: loop) { [self] result in
            switch result {
            case .failure(let status): fail(status)
            case .success(let client):
                clients.append(client)
                done(client)
            }
        }
    }

    private func listen(_ client: HTTP2Client, _ number: Int, _ request: [UInt8]) {
        guard case .grpc(let path, let metadata) = generator.wire else { return }
        let call = GRPCClient(client).open(path: path, metadata: metadata)
        calls.append(call)
        var isOpening = true
        let sent = EventLoop.monotonicNanoseconds()
        call.onMessage = { [self] message in
            receivedBytes += message.count
            let event = Self.event(message)
            if isOpening, event == .boundary {
                isOpening = false
                openingSeconds = max(openingSeconds, Double(EventLoop.monotonicNanoseconds() - sent) / 1e9)
                token = Self.token(message)
                state.withLock { $0.opening -= 1 }
            }
            onEvent?(number, event)
        }
        call.onFinish = { [self] status, _ in fail(status) }
        call.send(request)
    }

    private func fail(_ status: Status) {
        state.withLock { state in
            if !state.isClosing { state.failure = state.failure ?? "a listener has ended: \(status.description)" }
        }
    }

    /// Decodes only the required parts of a message: many thousands arrive per second.
    private static func event(_ message: [UInt8]) -> Event {
        guard message.count > 2 else { return .other }
        switch message[0] {
        // document_change. Without a matching target it is a removal, which is ignored here.
        case 0x1A: return .change
        // target_change: without a type it is NO_CHANGE, and without target ids a boundary.
        case 0x12: return message[2] == 0x22 || message[2] == 0x32 ? .boundary : .other
        default: return .other
        }
    }

    private static func token(_ message: [UInt8]) -> [UInt8] {
        do throws(Status) {
            return try ListenResponse(protobuf: message).targetChange?.resumeToken ?? []
        } catch { return [] }
    }

    private func wait(openingMax: Int) throws(ToolFailure) {
        try wait { $0.opening <= openingMax }
    }

    private func wait(_ isDone: (State) -> Bool) throws(ToolFailure) {
        while true {
            let (done, failure) = state.withLock { (isDone($0), $0.failure) }
            if let failure { throw ToolFailure(.failed, failure) }
            if done { return }
            usleep(200)
        }
    }

    /// Runs `body` on the loop and waits for it.
    func onLoop<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
        let shared = SharedResult<Result>()
        loop.execute { shared.set(body()) }
        return shared.wait()
    }

    func close() {
        state.withLock { $0.isClosing = true }
        loop.execute { [self] in for client in clients { client.close() } }
        loop.stopAndJoin()
    }

    // MARK: Loads

    /// Commits one after another, each when all listeners have seen the one before.
    /// - Returns: the time from sending a commit to its snapshot for each listener, and to its response.
    func latencies(
        listeners: Int, seconds: Double, warmUp: Double, path: String, _ commit: @escaping @Sendable (Int) -> [UInt8]
    ) throws(ToolFailure) -> (snapshots: LoadResult, commits: LoadResult) {
        let run = ListenLatencyRun(listeners: listeners, seconds: seconds, warmUp: warmUp)
        guard case .grpc(_, let metadata) = generator.wire else { return (LoadResult(), LoadResult()) }
        connect { [self] client in
            let grpc = GRPCClient(client)
            let request = grpc.request(path: path, metadata: metadata)
            func next() {
                guard let number = run.next() else { return }
                grpc.unary(request, message: commit(number)) { answer in
                    if case .failure(let status) = answer { self.fail(status) }
                    if run.answered() { next() }
                }
            }
            onEvent = { _, event in if event == .boundary, run.delivered() { next() } }
            next()
        }
        try wait { _ in run.isOver }
        onLoop { [self] in onEvent = nil }
        return run.results()
    }
}

/// Passes a result from the loop to the waiting thread.
private final class SharedResult<Result: Sendable>: Sendable {
    private let result = Mutex<Result?>(nil)

    func set(_ value: Result) { result.withLock { $0 = value } }

    func wait() -> Result {
        while true {
            if let value = result.withLock({ $0 }) { return value }
            usleep(200)
        }
    }
}
