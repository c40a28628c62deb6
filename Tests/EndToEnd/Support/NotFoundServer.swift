import Foundation
import Glibc
import Synchronization

/// Answers each HTTP/2 request with 404, like a reverse proxy that temporarily has no route.
final class NotFoundServer: Sendable {
    let port: Int
    private let answered = Atomic<Int>(0)
    private let listening: Int32

    var requests: Int { answered.load(ordering: .relaxed) }

    init() throws {
        listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listening
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isListening else { throw Proxy.Failure(call: "listen") }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in
            while true {
                let client = accept(descriptor, nil, nil)
                if client < 0 {
                    _ = Glibc.close(descriptor)
                    return
                }
                Thread.detachNewThread { [self] in serve(client) }
            }
        }
    }

    func close() { shutdown(listening, Int32(SHUT_RDWR)) }

    private func serve(_ client: Int32) {
        defer { _ = Glibc.close(client) }
        let preface = 24
        guard Self.read(preface, from: client) != nil else { return }
        let (headers, settings): (UInt8, UInt8) = (1, 4)
        Self.write([0, 0, 0, settings, 0, 0, 0, 0, 0], to: client)
        while let head = Self.read(9, from: client) {
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard Self.read(length, from: client) != nil else { return }
            switch head[3] {
            case settings where head[4] & 1 == 0: Self.write([0, 0, 0, settings, 1, 0, 0, 0, 0], to: client)
            case headers:
                answered.add(1, ordering: .relaxed)
                // `:status: 404`, index 13 of HPACK's static table (RFC 7541, Appendix A); the stream ends.
                Self.write([0, 0, 1, headers, 5] + head[5..<9] + [0x8D], to: client)
            default: break
            }
        }
    }

    private static func read(_ count: Int, from client: Int32) -> [UInt8]? {
        var all: [UInt8] = []
        while all.count < count {
            var buffer = [UInt8](repeating: 0, count: count - all.count)
            let received = recv(client, &buffer, buffer.count, 0)
            if received <= 0 { return nil }
            all += buffer.prefix(received)
        }
        return all
    }

    private static func write(_ bytes: [UInt8], to client: Int32) {
        _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
