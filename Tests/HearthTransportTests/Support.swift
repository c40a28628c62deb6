import Dispatch
import HearthModel
import HearthNetwork
import HearthTransport
import Synchronization
import Testing

/// Runs what blocks beside the pool of Swift's tasks.
func blocking<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(with: Swift.Result { try body() }) }
    }
}

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

/// Unary echo at /p.S/Unary, bidirectional echo at /p.S/Bidi, each byte as a message at /p.S/Split, nothing ever at
/// /p.S/Silent; the rest is unknown.
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

/// A value that something sets and a test waits for.
final class Box<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiters: [CheckedContinuation<Value, Never>] = []
    }

    private let state = Mutex(State())

    func set(_ value: Value) {
        let waiters = state.withLock { state in
            state.value = value
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }

    var current: Value? { state.withLock { $0.value } }

    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                if state.value == nil { state.waiters.append(continuation) }
                return state.value
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}

/// What came on a stream, gathered, for tests that wait for a part of it.
final class StreamRecorder: Sendable {
    private struct State {
        var openedCount = 0
        var messages: [[UInt8]] = []
        var end: (status: Status, trailers: [HTTPField])?
        var waiters: [(condition: @Sendable (StreamRecorder.Snapshot) -> Bool, resume: @Sendable () -> Void)] = []

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

    private let state = Mutex(State())

    func take(_ event: GRPCStreamEvent) {
        let ready = state.withLock { state -> [@Sendable () -> Void] in
            if state.end != nil { Issue.record("an event after the end: \(event)") }
            switch event {
            case .opened:
                if !state.messages.isEmpty { Issue.record("opened after a message") }
                state.openedCount += 1
            case .message(let message): state.messages.append(message)
            case .closed(let status, let trailers): state.end = (status, trailers)
            }
            let snapshot = state.snapshot
            let ready = state.waiters.filter { $0.condition(snapshot) }.map(\.resume)
            state.waiters.removeAll { $0.condition(snapshot) }
            return ready
        }
        for resume in ready { resume() }
    }

    var now: Snapshot { state.withLock { $0.snapshot } }

    @discardableResult
    func wait(_ condition: @escaping @Sendable (Snapshot) -> Bool) async -> Snapshot {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isReady = state.withLock { state in
                if condition(state.snapshot) { return true }
                state.waiters.append((condition, { continuation.resume() }))
                return false
            }
            if isReady { continuation.resume() }
        }
        return now
    }

    func end() async -> Snapshot { await wait { $0.status != nil } }
}

extension GRPCChannel {
    func open(_ path: String, _ recorder: StreamRecorder, timeoutMilliseconds: Int? = nil) -> GRPCStream {
        openStream(path, timeoutMilliseconds: timeoutMilliseconds) { recorder.take($0) }
    }
}

private let pattern = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }

/// Bytes that differ from place to place.
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

/// `#expect` cannot carry an error of a type out of its expansion.
func expectEqual<Value: Equatable>(
    _ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, sourceLocation: sourceLocation)
}
