import HearthHTTPClient
import HearthModel

/// The head of a handshake's response, and the bytes after it.
struct UpgradeAnswer: Equatable {
    var status: Int
    var fields: [HTTPField]
    var rest: [UInt8]
}

/// Parses the head of an HTTP/1.1 response that arrives in pieces, without libcurl. Pure.
struct UpgradeAnswerReader {
    private var held: [UInt8] = []

    /// - Returns: nil as long as the head is incomplete.
    /// - Throws: UNAVAILABLE when the input is not HTTP/1.1, RESOURCE_EXHAUSTED when it is too long.
    mutating func read(_ bytes: [UInt8]) throws(Status) -> UpgradeAnswer? {
        held += bytes
        while let end = endOfHead() {
            let answer = try UpgradeAnswerReader.parse(held[..<end], rest: Array(held[end...]))
            // Interim responses are ignored (RFC 9110, 15.2).
            guard answer.status / 100 == 1, answer.status != 101 else { return answer }
            held = answer.rest
        }
        guard held.count <= TransportLimits.headBytesMax else {
            throw .resourceExhausted("the head of the answer is larger than \(TransportLimits.headBytesMax) bytes")
        }
        return nil
    }

    /// The position after the empty line.
    private func endOfHead() -> Int? {
        var position = 3
        while position < held.count {
            if held[position] == 10, held[position - 1] == 13, held[position - 2] == 10, held[position - 3] == 13 {
                return position + 1
            }
            position += 1
        }
        return nil
    }

    private static func parse(_ head: ArraySlice<UInt8>, rest: [UInt8]) throws(Status) -> UpgradeAnswer {
        var lines = head.split(separator: 10).map { line in line.last == 13 ? line.dropLast() : line }
        // `HTTP/1.1 101 Switching Protocols`
        let first = lines.isEmpty ? [] : lines.removeFirst().split(separator: 32, maxSplits: 2)
        guard first.count >= 2, first[0].starts(with: "HTTP/1.".utf8), first[1].count == 3,
            let status = Int(String(decoding: first[1], as: UTF8.self)), status >= 100
        else { throw .unavailable("the server's answer isn't HTTP/1.1") }
        var fields: [HTTPField] = []
        for line in lines where !line.isEmpty {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
                throw .unavailable("the head of the server's answer is malformed")
            }
            var value = line[(colon + 1)...]
            while let byte = value.first, byte == 32 || byte == 9 { value = value.dropFirst() }
            while let byte = value.last, byte == 32 || byte == 9 { value = value.dropLast() }
            fields.append(
                HTTPField(
                    String(decoding: line[..<colon], as: UTF8.self).lowercased(), String(decoding: value, as: UTF8.self)
                ))
        }
        return UpgradeAnswer(status: status, fields: fields, rest: rest)
    }
}

enum UpgradeRequest {
    /// - Throws: INVALID_ARGUMENT for a path or field that would change the structure of the request.
    static func bytes(address: ServerAddress, path: String, fields: [HTTPField]) throws(Status) -> [UInt8] {
        guard path.utf8.first == UInt8(ascii: "/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .invalidArgument("\"\(path)\" is not a percent-encoded path")
        }
        // A server may send its clients this name as its address, so it includes the port, unless it is the default.
        let isDefaultPort = address.port == (address.isSecure ? 443 : 80)
        let host = isDefaultPort ? String(address.string.dropLast(":\(address.port)".utf8.count)) : address.string
        var string = "GET \(path) HTTP/1.1\r\n"
        for field in [HTTPField("host", host)] + fields {
            _ = try field.line()
            string += "\(field.name): \(field.value)\r\n"
        }
        return Array((string + "\r\n").utf8)
    }
}
