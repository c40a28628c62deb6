import HearthLoadClient
import HearthModel
import HearthNetwork

/// A minimal WebSocket to the Realtime Database, so that the client's cost does not falsify the measurement.
///
/// `@unchecked Sendable`: belongs to the loop's thread.
final class DatabaseSocket: @unchecked Sendable {
    private let client: TCPClient
    /// Bytes of an incomplete frame.
    private var part: [UInt8] = []
    /// Until the server has sent its handshake.
    private var onReady: ((DatabaseSocket) -> Void)?
    private var hasUpgraded = false

    /// One message; valid during the call.
    var onText: ((UnsafeRawBufferPointer) -> Void)?
    var onClose: ((String) -> Void)?
    private(set) var receivedBytes = 0

    private init(_ client: TCPClient) { self.client = client }

    /// - Parameter ready: called on the loop when the server has sent its handshake.
    static func open(
        host: String, port: Int, namespace: String, on loop: EventLoop,
        failed: @escaping @Sendable (String) -> Void, ready: @escaping @Sendable (DatabaseSocket) -> Void
    ) {
        TCPClient.connect(host: host, port: port, on: loop) { result in
            switch result {
            case .failure(let status): failed(status.message)
            case .success(let client):
                let socket = DatabaseSocket(client)
                socket.onReady = ready
                socket.onClose = failed
                // The client and the socket reference each other until the connection ends.
                client.onBytes = { bytes in socket.received(bytes) }
                client.onClose = {
                    socket.onClose?("the server has closed a connection")
                    socket.onClose = nil
                }
                client.send(
                    Array(
                        ("GET /.ws?v=5&ns=\(namespace) HTTP/1.1\r\nHost: \(HTTP2Client.Configuration.authority(host, port))\r\n"
                            + "Upgrade: websocket\r\n"
                            + "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").utf8))
            }
        }
    }

    func close() {
        onClose = nil
        client.close()
    }

    /// Sends a text message, masked with zeros, which is sufficient between a bench and its server.
    func send(_ string: [UInt8]) { client.send(Self.frame(0x81, string)) }

    private static func frame(_ head: UInt8, _ payload: some Collection<UInt8>) -> [UInt8] {
        var frame: [UInt8] = [head]
        switch payload.count {
        case ..<126: frame.append(0x80 | UInt8(payload.count))
        case ..<65_536: frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: preconditionFailure("a bench sends no message of \(payload.count) bytes")
        }
        frame += [0, 0, 0, 0]
        frame += payload
        return frame
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        receivedBytes += bytes.count
        if part.isEmpty {
            part += bytes.dropFirst(take(bytes))
            return
        }
        part += bytes
        let taken = part.withUnsafeBytes { take($0) }
        part.removeFirst(taken)
    }

    /// - Returns: the bytes of the whole frames that were there.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        var start = 0
        if !hasUpgraded {
            guard let end = Self.endOfHead(bytes) else { return 0 }
            guard bytes.count > 12, bytes[9] == UInt8(ascii: "1") else {
                onClose?("the server doesn't upgrade: \(String(decoding: bytes.prefix(60), as: UTF8.self))")
                close()
                return bytes.count
            }
            hasUpgraded = true
            start = end
        }
        while bytes.count - start >= 2 {
            var length = Int(bytes[start + 1] & 0x7F)
            var head = 2
            if length == 126 {
                head = 4
                guard bytes.count - start >= head else { break }
                length = Int(bytes[start + 2]) << 8 | Int(bytes[start + 3])
            } else if length == 127 {
                head = 10
                guard bytes.count - start >= head else { break }
                length = (2..<10).reduce(0) { $0 << 8 | Int(bytes[start + $1]) }
            }
            guard bytes.count - start >= head + length else { break }
            let payload = UnsafeRawBufferPointer(rebasing: bytes[(start + head)..<(start + head + length)])
            took(bytes[start] & 0x0F, payload)
            start += head + length
        }
        return start
    }

    private func took(_ opcode: UInt8, _ payload: UnsafeRawBufferPointer) {
        switch opcode {
        case 1:
            if let ready = onReady {
                onReady = nil
                ready(self)
            } else {
                onText?(payload)
            }
        case 8:
            onClose?("the server has ended a connection")
            close()
        case 9: client.send(Self.frame(0x8A, payload))
        default: break
        }
    }

    private static func endOfHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (4...bytes.count).first { end in
            bytes[end - 1] == 0x0A && bytes[end - 2] == 0x0D && bytes[end - 3] == 0x0A && bytes[end - 4] == 0x0D
        }
    }
}
