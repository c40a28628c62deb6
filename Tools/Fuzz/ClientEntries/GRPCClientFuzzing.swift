import HearthConcurrency
import HearthHTTPClient
import HearthModel
import HearthTransport
import Synchronization

/// The entry point for fuzzing what a server answers to gRPC streams of the client: its HTTP/2 frames, heads, trailers and gRPC's frames.
/// Whatever it sends before it closes, the stream ends once, with a status. A violated invariant traps.
package enum GRPCClientFuzzing {
    private static let server = HostileServer()
    private static let messageBytesMax = 1 << 16
    private static let transport: Transport = {
        do throws(Status) { return try Transport() } catch { preconditionFailure("no transport: \(error)") }
    }()

    /// The server has one connection at a time.
    private static let exchange = Mutex(())

    /// The sizes of the pieces in which the server writes, from the first byte on, then what it writes: with the first bit of the first
    /// byte behind its SETTINGS.
    package static func fuzz(_ bytes: [UInt8]) { exchange.withLock { _ in run(bytes) } }

    private static func run(_ bytes: [UInt8]) {
        guard let first = bytes.first else { return }
        let pieceBytes = Int(first >> 1) + 1
        let answer = (first & 1 == 1 ? settings : []) + bytes.dropFirst()
        server.serveNext { connection in
            // The preface, and the head and the message of the stream may come later.
            guard connection.read(until: { $0.count >= 24 }) != nil else { return }
            for start in stride(from: 0, to: answer.count, by: pieceBytes) {
                connection.write(answer[start..<min(start + pieceBytes, answer.count)])
            }
            connection.end()
        }
        let channel = GRPCChannel(
            transport: transport,
            address: ServerAddress(host: "127.0.0.1", port: server.port, security: .plaintext, proxy: .none),
            messageBytesMax: messageBytesMax)
        let events = Events()
        let stream = channel.openStream("/p.S/M") { events.take($0) }
        stream.send(Array("a message".utf8))
        do throws(Status) {
            let status = try events.end.wait()
            precondition(status != .ok || !answer.isEmpty, "a stream without an answer has succeeded")
        } catch { preconditionFailure("\(error)") }
    }

    /// A SETTINGS frame without settings.
    private static let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]

    private final class Events: Sendable {
        let end = Awaited<Status>()
        private let isOver = Atomic<Bool>(false)

        func take(_ event: GRPCStreamEvent) {
            precondition(!isOver.load(ordering: .relaxed), "an event behind the end")
            switch event {
            case .opened: break
            case .message(let message):
                precondition(message.count <= GRPCClientFuzzing.messageBytesMax, "a message that is too large")
            case .closed(let status, _):
                isOver.store(true, ordering: .relaxed)
                end.set(.success(status))
            }
        }
    }
}
