import HearthNetwork
import HearthWebSocket

/// A client's end over a blocking socket: its output is handwritten or encoded by the codec.
final class WebSocketPeer {
    let connection: RawConnection
    let codec: WebSocketConnection
    private var events: [WebSocketConnection.Event] = []

    struct Failure: Error { var string: String }

    static let request = [
        "GET /echo HTTP/1.1", "host: h", "upgrade: websocket", "connection: Upgrade", "sec-websocket-version: 13",
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ]

    /// - Parameter behind: bytes that are sent together with the request.
    init(
        _ server: NetworkServer, compresses: Bool = false, more: [String] = [], behind: [UInt8] = []
    ) async throws {
        connection = try RawConnection(port: server.port)
        let offer = "sec-websocket-extensions: permessage-deflate; client_max_window_bits"
        let lines = WebSocketPeer.request + (compresses ? [offer] : []) + more
        connection.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + behind)
        let answer = try await connection.readAnswer(hasBody: false)
        guard answer.status == 101 else { throw Failure(string: "status \(answer.status)") }
        let deflates = answer.headers["sec-websocket-extensions"] != nil
        codec = WebSocketConnection(
            role: .client, limits: WebSocketLimits(compressionThresholdBytes: 100),
            deflate: deflates ? WebSocketDeflate() : nil)
    }

    func send(string: String) { connection.send(codec.send(string: Array(string.utf8))) }

    func send(_ bytes: [UInt8]) { connection.send(bytes) }

    /// The next event, pings included.
    func next() async throws -> WebSocketConnection.Event {
        while events.isEmpty {
            events += try codec.receive(try await connection.readSome())
        }
        return events.removeFirst()
    }

    func nextText() async throws -> String {
        let event = try await next()
        guard case .string(let bytes) = event else { throw Failure(string: "\(event)") }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The close code; the connection ends afterwards.
    func closeCode() async throws -> WebSocketCloseCode? {
        while true {
            guard case .close(let code, _) = try await next() else { continue }
            connection.finishSending()
            guard try await connection.readToEnd().isEmpty else {
                throw Failure(string: "bytes behind the close frame")
            }
            return code
        }
    }
}
