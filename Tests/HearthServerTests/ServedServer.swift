@testable import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthWire

@testable import HearthServer

/// A server in memory with its sockets, and a client that uses gRPC and HTTP on one connection.
final class ServedServer: Sendable {
    let server: Server
    private let loop: EventLoop
    private let client: HTTP2Client

    init(_ change: (inout Server.Configuration) -> Void = { _ in }) async throws {
        var configuration = Server.Configuration()
        configuration.dataFolder = nil
        configuration.network = ServerConfiguration(host: "127.0.0.1", port: 0, loopCount: 1)
        change(&configuration)
        let server = try Server(configuration)
        try server.start()
        self.server = server
        let loop = try EventLoop(index: 98)
        try loop.start()
        self.loop = loop
        let address = HTTP2Client.Configuration(host: "127.0.0.1", port: server.port)
        client = try await withCheckedThrowingContinuation { continuation in
            HTTP2Client.connect(address, on: loop) { continuation.resume(with: $0) }
        }
    }

    func stop() {
        loop.stopAndJoin()
        server.shutdown(graceSeconds: 0)
    }

    /// - Parameter last: whether a message is the last relevant one; then the call is cancelled.
    func call(
        _ path: String, _ messages: [[UInt8]], token: String? = nil, metadata: [HTTPHeader] = [],
        until last: @escaping @Sendable ([UInt8]) -> Bool = { _ in false }
    ) async -> (status: Status, messages: [[UInt8]]) {
        await withCheckedContinuation { continuation in
            loop.execute { [client] in
                let call = GRPCClient(client).open(path: path, metadata: Self.fields(token) + metadata)
                let received = Received()
                call.onMessage = { message in
                    received.messages.append(message)
                    guard last(message), !received.isOver else { return }
                    received.isOver = true
                    call.cancel()
                    continuation.resume(returning: (Status.ok, received.messages))
                }
                call.onFinish = { status, _ in
                    if received.isOver { return }
                    received.isOver = true
                    continuation.resume(returning: (status, received.messages))
                }
                for message in messages { call.send(message) }
                call.halfClose()
            }
        }
    }

    /// Belongs to the client's loop.
    private final class Received: @unchecked Sendable {
        var messages: [[UInt8]] = []
        var isOver = false
    }

    func http(
        _ method: String, _ path: String, _ body: String = "", token: String? = nil, headers: [HTTPHeader] = []
    ) async throws -> (status: Int, body: String) {
        let answer: HTTPClientAnswer = try await withCheckedThrowingContinuation { continuation in
            loop.execute { [client] in
                client.request(
                    method: method, path: path, headers: Self.fields(token) + headers, body: Array(body.utf8)
                ) { continuation.resume(with: $0) }
            }
        }
        return (answer.status, String(decoding: answer.body, as: UTF8.self))
    }

    private static func fields(_ token: String?) -> [HTTPHeader] {
        token.map { [HTTPHeader("authorization", "Bearer \($0)")] } ?? []
    }
}

/// The encoding of a message given as JSON.
func encoded(_ type: any WireMessage.Type, _ json: String) throws -> [UInt8] {
    func open<M: WireMessage>(_ type: M.Type) throws -> [UInt8] { try M(json: json).protobuf() }
    return try open(type)
}
