import HearthToolSupport
import Glibc

enum FreePort {
    /// A port that is not in use. Another program may take it before the bench uses it; then the bench fails with a
    /// message.
    static func find() throws(ToolFailure) -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = Loopback.address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic -> Int? in
                guard bind(descriptor, generic, length) == 0, getsockname(descriptor, generic, &length) == 0 else {
                    return nil
                }
                return Int(UInt16(bigEndian: pointer.pointee.sin_port))
            }
        }
        guard let port else { throw ToolFailure(.unavailable, "No port is free: \(String(cString: strerror(errno))).") }
        return port
    }
}
