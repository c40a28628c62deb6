@testable import HearthLoadClient
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTestSupport
import Synchronization
import Testing

/// A server whose handlers are closures; it is stopped after the body.
/// - Parameter faults: nil when the test expects none.
func withServer<Result: Sendable>(
    limits: NetworkLimits = NetworkLimits(), loopCount: Int = 1, tls: TLSConfiguration? = nil,
    compressionThresholdBytes: Int? = nil, faults: BrokenInvariants? = nil,
    http: @escaping @Sendable (HTTPExchange) -> Void = { $0.respond(status: 404, headers: [], body: []) },
    grpc: @escaping @Sendable (GRPCCall) -> Void = { $0.finish(.unimplemented("no such method: \($0.path)")) },
    _ body: (NetworkServer) async throws -> Result
) async throws -> Result {
    var configuration = ServerConfiguration(
        host: "127.0.0.1", loopCount: loopCount, tls: tls, limits: limits,
        grpcCompressionThresholdBytes: compressionThresholdBytes)
    if let faults { configuration.brokenInvariants = faults }
    let server = NetworkServer(
        configuration: configuration,
        http: ClosureHTTPHandler(closure: http), grpc: ClosureGRPCHandler(closure: grpc))
    try server.start()
    do {
        let result = try await body(server)
        try await stop(server)
        if faults == nil { #expect(server.statistics.brokenInvariants == 0) }
        return result
    } catch {
        try await stop(server)
        throw error
    }
}

func stop(_ server: NetworkServer, graceSeconds: Double = 0) async throws {
    try await blocking { server.shutdown(graceSeconds: graceSeconds) }
}

struct ClosureHTTPHandler: HTTPHandler {
    let closure: @Sendable (HTTPExchange) -> Void
    func begin(_ exchange: HTTPExchange) { closure(exchange) }
}

struct ClosureGRPCHandler: GRPCHandler {
    let closure: @Sendable (GRPCCall) -> Void
    func begin(_ call: GRPCCall) { closure(call) }
}

/// The loop that the tests' clients share.
let clientLoop: EventLoop = {
    do {
        let loop = try EventLoop(index: 99)
        try loop.start()
        return loop
    } catch { fatalError("\(error)") }
}()

func connect(
    _ server: NetworkServer, _ change: (inout HTTP2Client.Configuration) -> Void = { _ in }
) async throws -> HTTP2Client {
    var configuration = HTTP2Client.Configuration(host: "127.0.0.1", port: server.port)
    change(&configuration)
    return try await withCheckedThrowingContinuation { continuation in
        HTTP2Client.connect(configuration, on: clientLoop) { continuation.resume(with: $0) }
    }
}

func request(
    _ client: HTTP2Client, _ method: String, _ path: String, headers: [HTTPHeader] = [], body: [UInt8] = []
) async throws -> HTTPClientAnswer {
    try await withCheckedThrowingContinuation { continuation in
        clientLoop.execute {
            client.request(method: method, path: path, headers: headers, body: body) {
                continuation.resume(with: $0)
            }
        }
    }
}

struct CallResult: Sendable {
    var status: Status
    var messages: [[UInt8]]
    var trailers: [HTTPHeader]
}

/// Sends the messages, half-closes, and collects the responses.
func call(
    _ client: HTTP2Client, _ path: String, metadata: [HTTPHeader] = [], messages: [[UInt8]],
    timeoutMilliseconds: Int? = nil, compresses: Bool = false
) async -> CallResult {
    await withCheckedContinuation { continuation in
        clientLoop.execute {
            let call = GRPCClient(client).open(
                path: path, metadata: metadata, timeoutMilliseconds: timeoutMilliseconds, compresses: compresses)
            var received: [[UInt8]] = []
            call.onMessage = { received.append($0) }
            call.onFinish = { status, trailers in
                continuation.resume(returning: CallResult(status: status, messages: received, trailers: trailers))
            }
            for message in messages { call.send(message) }
            call.halfClose()
        }
    }
}

/// Runs something on the clients' loop and waits for it.
func onClientLoop<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        clientLoop.execute { continuation.resume(returning: body()) }
    }
}
