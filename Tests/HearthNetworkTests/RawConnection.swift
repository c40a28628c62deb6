import CLinux
import Glibc
import HearthTestSupport

/// A blocking socket that sends exactly a test's bytes. One task at a time uses it.
final class RawConnection: @unchecked Sendable {
    let descriptor: Int32
    private var buffered: [UInt8] = []

    struct Failure: Error { var string: String }

    /// - Parameter host: the last part of the address from which it connects, 127.0.0.x.
    init(port: Int, host: UInt32 = 1) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var timeout = timeval(tv_sec: Patience.seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var noDelay: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &noDelay, 4)
        if host != 1 {
            let result = Self.withAddress(host: host, port: 0) { bind(descriptor, $0, $1) }
            guard result == 0 else { throw Failure(string: "bind: \(errno)") }
        }
        let result = Self.withAddress(host: 1, port: port) { Glibc.connect(descriptor, $0, $1) }
        guard result == 0 else { throw Failure(string: "connect: \(errno)") }
    }

    private static func withAddress(
        host: UInt32, port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = (0x7F00_0000 | host).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    deinit { close(descriptor) }

    func send(_ string: String) { send(Array(string.utf8)) }

    /// A connection that the server has closed swallows the bytes: the tests then check the input.
    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            sent += count
        }
    }

    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// More bytes; empty at the end. A reset counts as an end.
    private func receive() throws -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count < 0 {
            if errno == ECONNRESET { return [] }
            throw Failure(string: "nothing came in time; so far: \(String(decoding: buffered, as: UTF8.self))")
        }
        return Array(chunk[..<count])
    }

    func read(_ count: Int) async throws -> [UInt8] { try await blocking { try self.readNow(count) } }
    /// The available or the next input; throws at the end.
    func readSome() async throws -> [UInt8] {
        try await blocking {
            let bytes = self.buffered.isEmpty ? try self.receive() : self.buffered
            self.buffered = []
            if bytes.isEmpty { throw Failure(string: "the connection ended") }
            return bytes
        }
    }
    func readToEnd() async throws -> [UInt8] { try await blocking { try self.readToEndNow() } }
    func readStringToEnd() async throws -> String { String(decoding: try await readToEnd(), as: UTF8.self) }

    /// One HTTP/1.1 answer, by its length or in chunks.
    func readAnswer(hasBody: Bool = true) async throws -> Answer {
        try await blocking { try self.readAnswerNow(hasBody: hasBody) }
    }

    private func readNow(_ count: Int) throws -> [UInt8] {
        while buffered.count < count {
            let more = try receive()
            if more.isEmpty { throw Failure(string: "the connection ended early") }
            buffered += more
        }
        defer { buffered.removeFirst(count) }
        return Array(buffered[..<count])
    }

    private func readToEndNow() throws -> [UInt8] {
        while true {
            let more = try receive()
            if more.isEmpty { break }
            buffered += more
        }
        defer { buffered = [] }
        return buffered
    }

    private func readLine() throws -> String {
        var line: [UInt8] = []
        while !line.suffix(2).elementsEqual([13, 10]) { line += try readNow(1) }
        return String(decoding: line.dropLast(2), as: UTF8.self)
    }

    struct Answer: Sendable {
        var status: Int
        var headers: [String: String]
        var body: [UInt8]
        var string: String { String(decoding: body, as: UTF8.self) }
    }

    private func readAnswerNow(hasBody: Bool) throws -> Answer {
        let statusLine = try readLine().split(separator: " ")
        var answer = Answer(status: Int(statusLine[1]) ?? 0, headers: [:], body: [])
        while case let line = try readLine(), !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1)
            answer.headers[String(parts[0])] = String(parts[1].drop { $0 == " " })
        }
        guard hasBody, answer.status >= 200 else { return answer }
        if let length = answer.headers["content-length"].flatMap({ Int($0) }) {
            answer.body = try readNow(length)
        } else if answer.headers["transfer-encoding"] == "chunked" {
            while case let size = Int(try readLine(), radix: 16) ?? 0, size > 0 {
                answer.body += try readNow(size)
                _ = try readLine()
            }
            while try !readLine().isEmpty {}
        }
        return answer
    }
}

/// Handwritten HTTP/2 frames, for input that no correct client would send.
enum RawHTTP2 {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(type: 4)

    static func frame(type: UInt8, flags: UInt8 = 0, stream: Int = 0, payload: [UInt8] = []) -> [UInt8] {
        var frame = Array(bigEndian(payload.count).dropFirst())
        frame += [type, flags]
        frame += bigEndian(stream)
        return frame + payload
    }

    static func bigEndian(_ number: Int) -> [UInt8] {
        [UInt8(number >> 24 & 255), UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
    }

    /// Literals without indexing and without Huffman; short names and values only.
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        var block: [UInt8] = []
        for (name, value) in fields {
            block += [0, UInt8(name.utf8.count)]
            block += Array(name.utf8)
            block.append(UInt8(value.utf8.count))
            block += Array(value.utf8)
        }
        return block
    }

    static func request(
        stream: Int, path: String = "/p.S/M", contentType: String = "application/grpc", flags: UInt8 = 4,
        more: [(String, String)] = []
    ) -> [UInt8] {
        let fields =
            [(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", path)]
            + [("content-type", contentType)] + more
        return frame(type: 1, flags: flags, stream: stream, payload: block(fields))
    }

    struct Frame {
        var type: UInt8
        var flags: UInt8
        var stream: Int
        var payload: [UInt8]
    }

    static func frames(_ bytes: [UInt8]) -> [Frame] {
        var frames: [Frame] = []
        var rest = bytes[...]
        while rest.count >= 9 {
            let header = Array(rest.prefix(9))
            let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
            guard rest.count >= 9 + length else { break }
            let stream = Int(header[5]) << 24 | Int(header[6]) << 16 | Int(header[7]) << 8 | Int(header[8])
            frames.append(
                Frame(
                    type: header[3], flags: header[4], stream: stream,
                    payload: Array(rest.dropFirst(9).prefix(length))))
            rest = rest.dropFirst(9 + length)
        }
        return frames
    }

    /// The error code of the last GOAWAY among these frames.
    static func goAwayCode(_ bytes: [UInt8]) -> Int? {
        guard let frame = frames(bytes).last(where: { $0.type == 7 }), frame.payload.count >= 8 else { return nil }
        return frame.payload[4..<8].reduce(0) { $0 << 8 | Int($1) }
    }
}
