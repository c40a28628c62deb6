import HearthModel
import HearthNetwork
import HearthTestSupport
import HearthHTTPClient
import HearthTransport
import Synchronization
import Testing

struct ClosureHTTPHandler: HTTPHandler {
    let closure: @Sendable (HTTPExchange) -> Void
    func begin(_ exchange: HTTPExchange) { closure(exchange) }
}

struct ClosureGRPCHandler: GRPCHandler {
    let closure: @Sendable (GRPCCall) -> Void
    func begin(_ call: GRPCCall) { closure(call) }
}

func makeServer(
    port: Int = 0, limits: NetworkLimits = NetworkLimits(), tls: TLSConfiguration? = nil,
    compressionThresholdBytes: Int? = nil,
    http: @escaping @Sendable (HTTPExchange) -> Void = { $0.respond(status: 404, headers: [], body: []) },
    grpc: @escaping @Sendable (GRPCCall) -> Void = echoService
) throws -> NetworkServer {
    let server = NetworkServer(
        configuration: ServerConfiguration(
            host: "127.0.0.1", port: port, loopCount: 1, tls: tls, limits: limits,
            grpcCompressionThresholdBytes: compressionThresholdBytes),
        http: ClosureHTTPHandler(closure: http), grpc: ClosureGRPCHandler(closure: grpc))
    try server.start()
    return server
}

/// A server on a port that the system does not assign automatically, so that another server can use it afterwards.
func makeServerToReplace() throws -> NetworkServer {
    var failure: (any Error)?
    for _ in 0..<50 {
        // Linux assigns ports from 32768 on.
        do { return try makeServer(port: .random(in: 20_000..<32_000)) } catch { failure = error }
    }
    throw failure ?? Status.unavailable("no port")
}

func stop(_ server: NetworkServer, graceSeconds: Double = 0) async throws {
    try await blocking { server.shutdown(graceSeconds: graceSeconds) }
}

/// A server and a transport for the body, both ended afterwards.
func withServer<Result: Sendable>(
    limits: NetworkLimits = NetworkLimits(), tls: TLSConfiguration? = nil, compressionThresholdBytes: Int? = nil,
    http: @escaping @Sendable (HTTPExchange) -> Void = { $0.respond(status: 404, headers: [], body: []) },
    grpc: @escaping @Sendable (GRPCCall) -> Void = echoService,
    _ body: (NetworkServer, Transport) async throws -> Result
) async throws -> Result {
    let server = try makeServer(
        limits: limits, tls: tls, compressionThresholdBytes: compressionThresholdBytes, http: http, grpc: grpc)
    let transport = try Transport()
    do {
        let result = try await body(server, transport)
        try await blocking { transport.shutDown() }
        try await stop(server)
        return result
    } catch {
        try await blocking { transport.shutDown() }
        try await stop(server)
        throw error
    }
}

func channel(_ transport: Transport, port: Int, security: TransportSecurity = .plaintext) -> GRPCChannel {
    GRPCChannel(
        transport: transport,
        address: ServerAddress(
            host: security == .plaintext ? "127.0.0.1" : "localhost", port: port, security: security, proxy: .none))
}

/// Unary echo at /p.S/Unary, bidirectional echo at /p.S/Bidi, each byte as a message at /p.S/Split, no response at
/// /p.S/Silent; other methods are unknown.
@Sendable func echoService(_ call: GRPCCall) {
    switch call.path {
    case "/p.S/Unary":
        call.unary { message in
            call.send(message)
            call.finish(.ok)
        }
    case "/p.S/Split":
        call.unary { message in
            for byte in message { call.send([byte]) }
            call.finish(.ok)
        }
    case "/p.S/Bidi":
        call.onMessage = { call.send($0) }
        call.onHalfClose = { call.finish(.ok, trailers: [HTTPHeader("x-end", "1")]) }
    case "/p.S/Silent": call.onMessage = { _ in }
    default: call.finish(.unimplemented("no such method: \(call.path)"))
    }
}

/// Answers the first message with many of 50 kB, and then ends.
func flood(_ countMax: Int) -> @Sendable (GRPCCall) -> Void {
    { call in
        nonisolated(unsafe) var count = 0
        let produce = { @Sendable in
            while count < countMax {
                count += 1
                if !call.send([UInt8](repeating: UInt8(truncatingIfNeeded: count), count: 50_000)) { return }
            }
            call.finish(.ok)
        }
        call.onMessage = { _ in
            call.onWritable = produce
            produce()
        }
    }
}

/// The recorded events of a stream, for tests that wait for a part of them.
final class StreamRecorder: Sendable {
    private struct State {
        var openedCount = 0
        var messages: [[UInt8]] = []
        var end: (status: Status, trailers: [HTTPField])?
        var waiters: [UInt64: Waiter] = [:]
        var waiterCount: UInt64 = 0

        var snapshot: Snapshot {
            Snapshot(
                openedCount: openedCount, messages: messages, status: end?.status, trailers: end?.trailers ?? [])
        }
    }

    struct Snapshot: Sendable {
        var openedCount: Int
        var messages: [[UInt8]]
        var status: Status?
        var trailers: [HTTPField]
    }

    private struct Waiter {
        var condition: @Sendable (StreamRecorder.Snapshot) -> Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    private let state = Mutex(State())

    func take(_ event: GRPCStreamEvent) {
        let ready = state.withLock { state -> [Waiter] in
            if state.end != nil { Issue.record("an event after the end: \(event)") }
            switch event {
            case .opened:
                if !state.messages.isEmpty { Issue.record("opened after a message") }
                state.openedCount += 1
            case .message(let message): state.messages.append(message)
            case .closed(let status, let trailers): state.end = (status, trailers)
            }
            let snapshot = state.snapshot
            let ready = state.waiters.filter { $0.value.condition(snapshot) }
            for number in ready.keys { state.waiters[number] = nil }
            return ready.values.map { $0 }
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    var now: Snapshot { state.withLock { $0.snapshot } }

    /// Waits until the condition holds or the test's task is cancelled; the test checks the condition.
    @discardableResult
    func wait(_ condition: @escaping @Sendable (Snapshot) -> Bool) async -> Snapshot {
        let number = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isReady = state.withLock { state in
                    if condition(state.snapshot) { return true }
                    state.waiters[number] = Waiter(condition: condition, continuation: continuation)
                    return false
                }
                if isReady { return continuation.resume() }
                if Task.isCancelled { giveUp(number) }
            }
        } onCancel: {
            giveUp(number)
        }
        return now
    }

    private func giveUp(_ number: UInt64) {
        state.withLock { $0.waiters.removeValue(forKey: number) }?.continuation.resume()
    }

    func end() async -> Snapshot { await wait { $0.status != nil } }
}

/// Waits until a transport's thread has nothing to do: until it runs a handful of ticks at most while one of its own
/// timers passes, the deadline of a call that is not answered. False when its thread does not become idle.
func becomesIdle(_ transport: Transport, port: Int, security: TransportSecurity = .plaintext) async -> Bool {
    // To open and to end the call itself takes about ten; a thread that is woken for nothing makes thousands.
    let ticksMax = 30
    for _ in 0..<50 {
        let before = transport.statistics.ticks
        let recorder = StreamRecorder()
        let call = channel(transport, port: port, security: security).open(
            "/p.S/Silent", recorder, timeoutMilliseconds: 200)
        let end = await recorder.end()
        expectEqual(end.status?.code, .deadlineExceeded)
        expectEqual(call.queuedBytes, 0)
        if transport.statistics.ticks - before <= ticksMax { return true }
    }
    return false
}

extension GRPCChannel {
    func open(_ path: String, _ recorder: StreamRecorder, timeoutMilliseconds: Int? = nil) -> GRPCStream {
        openStream(path, timeoutMilliseconds: timeoutMilliseconds) { recorder.take($0) }
    }
}

extension GRPCChannel {
    /// A stream that pauses itself after a number of messages.
    func openPausing(_ recorder: StreamRecorder, at counts: [Int]) -> GRPCStream {
        let opened = Box<GRPCStream>()
        let stream = openStream("/a/b") { event in
            if case .message = event, counts.contains(recorder.now.messages.count + 1) {
                opened.current?.pauseReceiving()
            }
            recorder.take(event)
        }
        opened.set(stream)
        stream.send([1])
        return stream
    }
}

private let pattern = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }

/// Bytes without a short period.
func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count { bytes.append(contentsOf: pattern.prefix(count - bytes.count)) }
    return bytes
}

/// The status that a call fails with.
func failure<Result>(_ body: () async throws -> Result) async -> Status? {
    do {
        _ = try await body()
        return nil
    } catch {
        if !(error is Status) { Issue.record(error) }
        return error as? Status
    }
}

/// `#expect` cannot pass on a typed error.
func expectEqual<Value: Equatable>(
    _ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, sourceLocation: sourceLocation)
}
