import Foundation
import Synchronization

/// A TCP proxy on the loopback interface: the network between clients and server, which can be cut.
final class Proxy: Sendable {
    private struct State {
        var listening: Int32 = -1
        var isCut = false
        /// Both descriptors of each connection.
        var open: [Int: (client: Int32, server: Int32)] = [:]
        var nextID = 0
        var accepted = 0
        /// Connections whose requests wait.
        var held: Set<Int> = []
        var holdsNew = false
    }

    struct Failure: Error {
        var call: String
        var code = errno
    }

    let port: Int
    private let target: Atomic<Int>
    private let state = Mutex(State())
    private let bytes = Atomic<Int>(0)
    private let isFrozen = Atomic<Bool>(false)
    private let losesAnswers = Atomic<Bool>(false)

    /// Bytes from the server to the clients.
    var bytesToClients: Int { bytes.load(ordering: .relaxed) }
    /// The total number of accepted connections.
    var connectionsAccepted: Int { state.withLock { $0.accepted } }

    init(to target: Int) throws {
        self.target = Atomic(target)
        let listening = try Self.socket()
        guard Self.withLoopback(port: 0, { bind(listening, $0, $1) }) == 0 else { throw Failure(call: "bind") }
        guard listen(listening, 128) == 0 else { throw Failure(call: "listen") }
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listening, $0, &size) } == 0
        }
        guard isNamed else { throw Failure(call: "getsockname") }
        port = Int(UInt16(bigEndian: address.sin_port))
        state.withLock { $0.listening = listening }
        Thread.detachNewThread { [weak self] in
            while true {
                let client = accept(listening, nil, nil)
                if client < 0 {
                    if errno == EINTR || errno == ECONNABORTED { continue }
                    // The proxy was closed.
                    _ = Glibc.close(listening)
                    return
                }
                guard let self else {
                    _ = Glibc.close(client)
                    continue
                }
                self.take(client)
            }
        }
    }

    // MARK: Faults

    /// Breaks all connections, and every new one, until `restore`.
    func cut() {
        state.withLock { state in
            state.isCut = true
            Self.breakAll(state)
        }
    }

    func restore() { state.withLock { $0.isCut = false } }

    /// Stops all traffic without closing a connection, until `thaw`.
    func freeze() { isFrozen.store(true, ordering: .relaxed) }

    func thaw() { isFrozen.store(false, ordering: .relaxed) }

    /// Drops the server's data until the connections are broken.
    func loseAnswers() { losesAnswers.store(true, ordering: .relaxed) }

    /// Directs new connections to another server.
    func redirect(to port: Int) { target.store(port, ordering: .relaxed) }

    /// Whether the requests on new connections wait until `release`.
    func holdNew(_ holds: Bool) { state.withLock { $0.holdsNew = holds } }
    func hold(_ connection: Int) { state.withLock { _ = $0.held.insert(connection) } }
    func release(_ connection: Int) { state.withLock { _ = $0.held.remove(connection) } }

    /// Breaks the existing connections; new ones are accepted.
    func breakConnections() {
        state.withLock { state in
            Self.breakAll(state)
            losesAnswers.store(false, ordering: .relaxed)
        }
    }

    func close() {
        thaw()
        state.withLock { state in
            state.isCut = true
            Self.breakAll(state)
            if state.listening >= 0 { shutdown(state.listening, Int32(SHUT_RDWR)) }
            state.listening = -1
        }
    }

    private static func breakAll(_ state: State) {
        for ends in state.open.values {
            // The forwarding threads wake up and close the descriptors.
            shutdown(ends.client, Int32(SHUT_RDWR))
            shutdown(ends.server, Int32(SHUT_RDWR))
        }
    }

    // MARK: Connections

    private func take(_ client: Int32) {
        guard !state.withLock({ $0.isCut }), let server = connect() else {
            _ = Glibc.close(client)
            return
        }
        Self.setNoDelay(client)
        let id: Int? = state.withLock { state in
            if state.isCut { return nil }
            state.nextID += 1
            state.accepted += 1
            state.open[state.nextID] = (client, server)
            if state.holdsNew { state.held.insert(state.nextID) }
            return state.nextID
        }
        guard let id else {
            _ = Glibc.close(client)
            _ = Glibc.close(server)
            return
        }
        let running = PumpCount()
        pump(from: client, to: server, countsBytes: false, id, running)
        pump(from: server, to: client, countsBytes: true, id, running)
    }

    private final class PumpCount: Sendable {
        let ended = Atomic<Int>(0)
    }

    private func pump(from source: Int32, to sink: Int32, countsBytes: Bool, _ id: Int, _ count: PumpCount) {
        Thread.detachNewThread { [self] in
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            loop: while true {
                let received = recv(source, &buffer, buffer.count, 0)
                if received < 0, errno == EINTR { continue }
                while isFrozen.load(ordering: .relaxed) { usleep(5_000) }
                while !countsBytes, state.withLock({ $0.held.contains(id) && !$0.isCut }) { usleep(1_000) }
                guard received > 0 else { break }
                if countsBytes { bytes.add(received, ordering: .relaxed) }
                var sent = countsBytes && losesAnswers.load(ordering: .relaxed) ? received : 0
                while sent < received {
                    let n = buffer.withUnsafeBytes {
                        send(sink, $0.baseAddress! + sent, received - sent, Int32(MSG_NOSIGNAL))
                    }
                    if n < 0, errno == EINTR { continue }
                    guard n > 0 else { break loop }
                    sent += n
                }
            }
            // The end of one direction ends the connection.
            shutdown(source, Int32(SHUT_RDWR))
            shutdown(sink, Int32(SHUT_RDWR))
            guard count.ended.add(1, ordering: .acquiringAndReleasing).newValue == 2 else { return }
            // Under the lock, so that no descriptor is closed after its number was reused.
            state.withLock { state in
                state.open[id] = nil
                _ = Glibc.close(source)
                _ = Glibc.close(sink)
            }
        }
    }

    private func connect() -> Int32? {
        guard let descriptor = try? Self.socket() else { return nil }
        guard Self.withLoopback(port: target.load(ordering: .relaxed), { Glibc.connect(descriptor, $0, $1) }) == 0
        else {
            _ = Glibc.close(descriptor)
            return nil
        }
        Self.setNoDelay(descriptor)
        return descriptor
    }

    private static func socket() throws -> Int32 {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(call: "socket") }
        return descriptor
    }

    private static func setNoDelay(_ descriptor: Int32) {
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func withLoopback(port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
