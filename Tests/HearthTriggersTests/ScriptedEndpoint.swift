import Glibc
import HearthConcurrency
import HearthTestSupport
import Synchronization

/// A server whose answers a test writes byte by byte.
final class ScriptedEndpoint: Sendable {
    /// A connection on which a request was read.
    struct Connection {
        let descriptor: Int32
        let request: String

        func write(_ string: String) {
            let bytes = Array(string.utf8)
            var done = 0
            while done < bytes.count {
                let count = bytes[done...].withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count <= 0 { return }
                done += count
            }
        }

        /// Waits until the peer has closed.
        func waitForEnd() {
            var buffer = [UInt8](repeating: 0, count: 4096)
            while recv(descriptor, &buffer, buffer.count, 0) > 0 {}
        }
    }

    let port: Int
    private let listener: Int32
    private let count = Atomic(0)
    private let threads = Mutex<[NamedThread]>([])

    /// - Parameter answer: called for each request, with how many there were before; true keeps the connection open.
    init(_ answer: @escaping @Sendable (Connection, Int) -> Bool) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
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
        self.listener = listener
        add { [weak self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                if descriptor < 0 { return }
                guard let self else {
                    close(descriptor)
                    return
                }
                self.add { [weak self] in self?.serve(descriptor, answer) ?? { _ = close(descriptor) }() }
            }
        }
    }

    deinit { stop() }

    /// Ends listening; connections end with their peers.
    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    var url: String { "http://127.0.0.1:\(port)/function" }

    private func add(_ body: @escaping @Sendable () -> Void) {
        let thread = testThread(body)
        threads.withLock { $0.append(thread) }
    }

    private func serve(_ descriptor: Int32, _ answer: (Connection, Int) -> Bool) {
        defer { close(descriptor) }
        var received: [UInt8] = []
        while let request = Self.read(descriptor, &received) {
            let number = count.add(1, ordering: .relaxed).oldValue
            if !answer(Connection(descriptor: descriptor, request: request), number) { return }
        }
    }

    /// A request whose body has a length.
    private static func read(_ descriptor: Int32, _ received: inout [UInt8]) -> String? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            // The hello of TLS, which has no end that is known here.
            if received.first == 0x16 { return "" }
            let string = String(decoding: received, as: UTF8.self)
            if let end = string.range(of: "\r\n\r\n") {
                let head = string[..<end.lowerBound].lowercased()
                let length =
                    head.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst(15).trimming()) } ?? 0
                let size = string[..<end.upperBound].utf8.count + length
                if received.count >= size {
                    defer { received.removeFirst(size) }
                    return String(decoding: received[..<size], as: UTF8.self)
                }
            }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count <= 0 { return nil }
            received += buffer[..<count]
        }
    }
}

/// An address whose connections are never made: the queue of its listener is full, so the system drops what comes.
final class SilentAddress: Sendable {
    let port: Int
    private let descriptors: [Int32]

    init() {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var descriptors = [listener]
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(bind(listener, $0, length) == 0 && listen(listener, 0) == 0, "no port can be had")
                getsockname(listener, $0, &length)
                // More than the queue takes.
                for _ in 0..<4 {
                    let client = socket(
                        AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
                    _ = connect(client, $0, length)
                    descriptors.append(client)
                }
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        self.descriptors = descriptors
    }

    deinit { for descriptor in descriptors { close(descriptor) } }

    var url: String { "http://127.0.0.1:\(port)/" }
}

extension Substring {
    fileprivate func trimming() -> Substring { drop { $0 == " " } }
}

extension String {
    fileprivate func range(of part: String) -> Range<Index>? {
        var index = startIndex
        while index < endIndex {
            if self[index...].hasPrefix(part) { return index..<self.index(index, offsetBy: part.count) }
            index = self.index(after: index)
        }
        return nil
    }
}
