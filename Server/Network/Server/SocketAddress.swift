import CLinux
import Glibc
import HearthModel

/// Socket addresses and the options of the server's sockets.
enum SocketAddress {
    struct Resolved {
        var family: Int32
        var bytes: [UInt8]
        var string: String
    }

    /// The addresses of a host name or of an address string.
    static func resolve(host: String, port: Int, isForListening: Bool) throws(Status) -> [Resolved] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV | (isForListening ? AI_PASSIVE : 0)
        var list: UnsafeMutablePointer<addrinfo>?
        let isEveryInterface = host.isEmpty || host == "*"
        let result = getaddrinfo(isEveryInterface ? nil : host, String(port), &hints, &list)
        guard result == 0 else {
            throw .unavailable("cannot resolve the host \(host): \(String(cString: gai_strerror(result)))")
        }
        defer { freeaddrinfo(list) }
        var found: [Resolved] = []
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr {
                let bytes = Array(UnsafeRawBufferPointer(start: address, count: Int(entry.pointee.ai_addrlen)))
                if !found.contains(where: { $0.bytes == bytes }) {
                    var storage = sockaddr_storage()
                    withUnsafeMutableBytes(of: &storage) { $0.copyBytes(from: bytes) }
                    found.append(
                        Resolved(family: entry.pointee.ai_family, bytes: bytes, string: string(&storage)))
                }
            }
            next = entry.pointee.ai_next
        }
        return found
    }

    /// `127.0.0.1:8080`, `[::1]:8080`.
    static func string(_ address: inout sockaddr_storage) -> String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let size = socklen_t(buffer.count)
        switch Int32(address.ss_family) {
        case AF_INET:
            return withUnsafeBytes(of: &address) { bytes in
                var internet = bytes.loadUnaligned(as: sockaddr_in.self)
                inet_ntop(AF_INET, &internet.sin_addr, &buffer, size)
                return "\(string(buffer)):\(UInt16(bigEndian: internet.sin_port))"
            }
        case AF_INET6:
            return withUnsafeBytes(of: &address) { bytes in
                var internet = bytes.loadUnaligned(as: sockaddr_in6.self)
                inet_ntop(AF_INET6, &internet.sin6_addr, &buffer, size)
                return "[\(string(buffer))]:\(UInt16(bigEndian: internet.sin6_port))"
            }
        default: return "unknown"
        }
    }

    private static func string(_ buffer: [CChar]) -> String {
        String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func port(of descriptor: Int32) -> Int {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0 else { return 0 }
        return withUnsafeBytes(of: &address) { bytes in
            // The port has the same offset in both families.
            Int(UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_port))
        }
    }

    static func setPort(_ port: Int, in address: inout Resolved) {
        let offset = 2
        address.bytes[offset] = UInt8(truncatingIfNeeded: port >> 8)
        address.bytes[offset + 1] = UInt8(truncatingIfNeeded: port)
    }

    static func withPointer<Result>(
        _ address: Resolved, _ body: (UnsafePointer<sockaddr>?, socklen_t) -> Result
    ) -> Result {
        address.bytes.withUnsafeBytes { bytes in
            body(bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }

    /// Small responses are sent immediately, and the kernel detects a peer that vanished silently.
    static func setConnectionOptions(_ descriptor: Int32) {
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 60)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 15)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPCNT, 4)
    }

    static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        // Only a hint to the kernel: a connection without it works as well.
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
