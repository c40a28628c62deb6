import Glibc

enum Loopback {
    static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// A connected socket; nil when no server listens.
    static func connect(port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = address(port: port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    /// One HTTP/1.1 request on a connection of its own.
    /// - Returns: the whole answer; nil when there is none.
    static func request(port: Int, _ method: String, _ path: String, body: String = "") -> String? {
        guard let descriptor = connect(port: port) else { return nil }
        defer { close(descriptor) }
        let string =
            "\(method) \(path) HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner\r\nconnection: close\r\n"
            + "content-type: application/json\r\ncontent-length: \(body.utf8.count)\r\n\r\n\(body)"
        let bytes = Array(string.utf8)
        guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return nil }
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count < 0, errno == EINTR { continue }
            if count > 0 { answer += chunk[..<count] }
            // Some servers do not close the connection, although the request asks for it.
            if count <= 0 || isComplete(answer) {
                return answer.isEmpty ? nil : String(decoding: answer, as: UTF8.self)
            }
        }
    }

    private static func isComplete(_ answer: [UInt8]) -> Bool {
        var lengthBytes: Int?
        var start = 0
        while let end = answer[start...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = String(decoding: answer[start..<end], as: UTF8.self).lowercased()
            start = end + 1
            if line == "\r" {
                guard let lengthBytes else { return answer.suffix(5).elementsEqual("0\r\n\r\n".utf8) }
                return answer.count - start >= lengthBytes
            }
            if line.hasPrefix("content-length:") { lengthBytes = Int(line.filter(\.isNumber)) }
        }
        return false
    }
}
