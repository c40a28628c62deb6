import Foundation
import Glibc
import HearthModel
import Synchronization

/// A listening socket of 127.0.0.1 with a thread for each connection.
final class TestListener: Sendable {
    let port: Int
    private let descriptor: Int32
    private let accepted = Mutex<[Int32]>([])

    /// - Parameter serve: owns the connection's descriptor while it runs; it is closed afterwards.
    init(serve: @escaping @Sendable (Int32) -> Void) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = TestListener.address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(descriptor, address, length) == 0, listen(descriptor, 100) == 0 else { return Int32(-1) }
                return getsockname(descriptor, address, &length)
            }
        }
        guard code == 0 else { throw Status.unavailable("no socket") }
        self.descriptor = descriptor
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread {
            while case let connection = accept(descriptor, nil, nil), connection >= 0 {
                Thread.detachNewThread {
                    serve(connection)
                    close(connection)
                }
            }
        }
    }

    deinit {
        // Closing it ends the accepting thread.
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        return address
    }
}

enum TestSocket {
    /// A connection to a port of 127.0.0.1.
    static func connect(port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = TestListener.address(port: port)
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Empty at the end.
    static func receive(_ descriptor: Int32) -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        return count > 0 ? Array(chunk[..<count]) : []
    }

    /// False when the connection is broken.
    static func sendAll(_ descriptor: Int32, _ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Which of two sockets is readable, or nil when neither is within the time.
    static func waitForEither(_ first: Int32, _ second: Int32, milliseconds: Int32) -> (Bool, Bool)? {
        var waited = [
            pollfd(fd: first, events: Int16(POLLIN), revents: 0), pollfd(fd: second, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&waited, 2, milliseconds) > 0 else { return nil }
        return (waited[0].revents != 0, waited[1].revents != 0)
    }
}

/// An HTTP CONNECT proxy. Every name leads to 127.0.0.1.
final class ConnectProxy: Sendable {
    private struct Notes {
        var targets: [String] = []
        var answers = 0
        var isFrozen = false
        var isOver = false
    }

    /// Shared with the threads, which must not retain the proxy.
    private final class Shared: Sendable {
        let notes = Mutex(Notes())
    }

    private let shared: Shared
    private let listener: TestListener

    /// - Parameter refusal: the response to every CONNECT; nil: success.
    init(refusal: String? = nil) throws {
        let shared = Shared()
        self.shared = shared
        listener = try TestListener { Self.serve($0, shared, refusal) }
    }

    deinit { shared.notes.withLock { $0.isOver = true } }

    var port: Int { listener.port }
    var url: String { "http://127.0.0.1:\(port)" }
    /// `host:port` of every CONNECT.
    var targets: [String] { shared.notes.withLock { $0.targets } }
    /// Pieces that were received from servers.
    var answers: Int { shared.notes.withLock { $0.answers } }
    /// Stops forwarding without closing connections: a black hole.
    func freeze() { shared.notes.withLock { $0.isFrozen = true } }

    private static func serve(_ client: Int32, _ shared: Shared, _ refusal: String?) {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            let more = TestSocket.receive(client)
            guard !more.isEmpty else { return }
            head += more
        }
        let words = String(decoding: head, as: UTF8.self).split(separator: " ")
        guard words.count > 1, words[0] == "CONNECT",
            let port = words[1].split(separator: ":").last.flatMap({ Int($0) })
        else {
            _ = TestSocket.sendAll(client, Array("HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n".utf8))
            return
        }
        shared.notes.withLock { $0.targets.append(String(words[1])) }
        if let refusal {
            _ = TestSocket.sendAll(client, Array(refusal.utf8))
            return
        }
        guard let server = TestSocket.connect(port: port) else { return }
        defer { close(server) }
        guard TestSocket.sendAll(client, Array("HTTP/1.1 200 Here you are\r\n\r\n".utf8)) else { return }
        relay(client, server, shared)
    }

    private static func relay(_ client: Int32, _ server: Int32, _ shared: Shared) {
        while true {
            let (isFrozen, isOver) = shared.notes.withLock { ($0.isFrozen, $0.isOver) }
            if isOver { return }
            if isFrozen {
                usleep(20_000)
                continue
            }
            guard let ready = TestSocket.waitForEither(client, server, milliseconds: 100) else { continue }
            // Frozen meanwhile: the received data stays here.
            if shared.notes.withLock({ $0.isFrozen }) { continue }
            for (isReady, from, to) in [(ready.0, client, server), (ready.1, server, client)] where isReady {
                let bytes = TestSocket.receive(from)
                guard !bytes.isEmpty, TestSocket.sendAll(to, bytes) else { return }
                if from == server { shared.notes.withLock { $0.answers += 1 } }
            }
        }
    }
}
