import Glibc
import HearthConcurrency
import HearthModel
import Synchronization

/// A server at a port of 127.0.0.1 that does with each connection what the present input says.
///
/// `@unchecked Sendable`: the plan is behind a mutex, and the rest does not change.
final class HostileServer: @unchecked Sendable {
    /// What is done with a connection, which is closed afterwards.
    typealias Serve = @Sendable (Connection) -> Void

    /// A connection of a client.
    struct Connection {
        let descriptor: Int32

        /// Reads until `isEnough`; nil when the client has closed before.
        func read(until isEnough: ([UInt8]) -> Bool) -> [UInt8]? {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while !isEnough(bytes) {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count <= 0 { return nil }
                bytes += buffer[..<count]
            }
            return bytes
        }

        func write(_ bytes: some Collection<UInt8>) {
            var rest = Array(bytes)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                if count <= 0 { return }
                rest = rest.dropFirst(count)
            }
        }

        /// Sends the end, and reads until the client has closed, which it does when it has taken everything.
        func end() {
            shutdown(descriptor, Int32(SHUT_WR))
            _ = read { _ in false }
        }
    }

    private let plan = Mutex<Serve?>(nil)
    private let listener: Int32
    private(set) var port = 0
    private var thread: NamedThread?

    init() {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(isBound, "no port can be had")
        port = Int(UInt16(bigEndian: address.sin_port))
        thread = NamedThread.start("fuzz-server") { [unowned self] in run() }
        precondition(thread != nil, "there is no thread")
    }

    /// The next connection is served so, and those after it are closed at once.
    func serveNext(_ serve: @escaping Serve) { plan.withLock { $0 = serve } }

    private func run() {
        while true {
            let descriptor = accept(listener, nil, nil)
            if descriptor < 0 { continue }
            let serve = plan.withLock { plan in
                defer { plan = nil }
                return plan
            }
            serve?(Connection(descriptor: descriptor))
            close(descriptor)
        }
    }
}
