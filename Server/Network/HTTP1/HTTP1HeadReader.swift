/// Parses a complete request head. Grammar: RFC 9112 and RFC 9110, 5.
enum HTTP1HeadReader {
    static func read(
        _ bytes: UnsafeRawBufferPointer, limits: NetworkLimits
    ) throws(HTTP1Failure) -> HTTP1Head {
        var lineEnd = endOfLine(bytes, 0)
        let line = UnsafeRawBufferPointer(rebasing: bytes[..<lineEnd])
        var head = try requestLine(line, limits: limits)
        var fields = FramingFields()
        var position = lineEnd + 2
        while position < bytes.count {
            lineEnd = endOfLine(bytes, position)
            guard lineEnd > position else { break }
            guard head.headers.count < limits.headFieldsMax else {
                throw HTTP1Failure(status: 431, reason: "more than \(limits.headFieldsMax) header fields")
            }
            let header = try field(UnsafeRawBufferPointer(rebasing: bytes[position..<lineEnd]))
            try fields.note(header)
            head.headers.append(header)
            position = lineEnd + 2
        }
        try fields.apply(to: &head)
        return head
    }

    /// The position of the next CR LF; the caller guarantees that there is one, and that every LF follows a CR.
    private static func endOfLine(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var position = start
        while position < bytes.count, bytes[position] != .lf { position += 1 }
        return max(start, position - 1)
    }

    // MARK: Request line

    private static func requestLine(
        _ line: UnsafeRawBufferPointer, limits: NetworkLimits
    ) throws(HTTP1Failure) -> HTTP1Head {
        guard let firstSpace = line.firstIndex(of: space), let lastSpace = line.lastIndex(of: space),
            firstSpace < lastSpace
        else { throw .badRequest("malformed request line") }
        let method = line[..<firstSpace]
        let target = UnsafeRawBufferPointer(rebasing: line[(firstSpace + 1)..<lastSpace])
        let version = line[(lastSpace + 1)...]
        guard !method.isEmpty, method.count <= 32, method.allSatisfy(isTokenByte) else {
            throw .badRequest("malformed method")
        }
        guard target.count <= limits.targetBytesMax else {
            throw HTTP1Failure(status: 414, reason: "the request target is longer than \(limits.targetBytesMax) bytes")
        }
        // No control characters and no spaces. Other bytes must at least be valid UTF-8, so that the string preserves
        // them.
        guard !target.isEmpty, target.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            let targetString = String(validating: target, as: UTF8.self)
        else { throw .badRequest("malformed request target") }
        let isVersion1_0 = try readVersion(version)
        var head = HTTP1Head(
            method: string(UnsafeRawBufferPointer(rebasing: method)), target: targetString, authority: "", headers: [],
            isVersion1_0: isVersion1_0, body: .none, keepsAlive: !isVersion1_0, expectsContinue: false)
        try takeTargetApart(&head)
        return head
    }

    /// True for HTTP/1.0. A later minor version is read as 1.1, as RFC 9110, 2.5 asks.
    private static func readVersion(_ bytes: Slice<UnsafeRawBufferPointer>) throws(HTTP1Failure) -> Bool {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), bytes[6] == UInt8(ascii: "."), isDigit(bytes[5]),
            isDigit(bytes[7])
        else { throw .badRequest("malformed HTTP version") }
        guard bytes[5] == UInt8(ascii: "1") else {
            throw HTTP1Failure(status: 505, reason: "HTTP/1.1 or HTTP/2 is spoken here")
        }
        return bytes[7] == UInt8(ascii: "0")
    }

    /// The four forms of RFC 9112, 3.2.
    private static func takeTargetApart(_ head: inout HTTP1Head) throws(HTTP1Failure) {
        if head.method == "CONNECT" { throw HTTP1Failure(status: 501, reason: "this is not a proxy") }
        if head.target.utf8.first == UInt8(ascii: "/") { return }
        if head.target == "*" {
            guard head.method == "OPTIONS" else { throw .badRequest("only OPTIONS has the target *") }
            return
        }
        let bytes = Array(head.target.utf8)
        for scheme in ["http://", "https://"] {
            let prefix = Array(scheme.utf8)
            guard bytes.count > prefix.count, bytes.starts(with: prefix, by: { $0 | 0x20 == $1 | 0x20 }) else {
                continue
            }
            let rest = bytes[prefix.count...]
            let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
            guard end > rest.startIndex else { break }
            head.authority = String(decoding: rest[..<end], as: UTF8.self)
            let path = String(decoding: rest[end...], as: UTF8.self)
            head.target = path.utf8.first == UInt8(ascii: "/") ? path : "/" + path
            return
        }
        throw .badRequest("malformed request target")
    }

    // MARK: Fields

    /// One field line without its CRLF.
    static func field(_ line: UnsafeRawBufferPointer) throws(HTTP1Failure) -> HTTPHeader {
        guard let first = line.first, first != space, first != tab else {
            throw .badRequest("a header field is folded over two lines")
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
            throw .badRequest("a header line without a name")
        }
        let name = line[..<colon]
        guard name.allSatisfy(isTokenByte) else { throw .badRequest("malformed header field name") }
        var value = line[(colon + 1)...]
        while let byte = value.first, byte == space || byte == tab { value = value.dropFirst() }
        while let byte = value.last, byte == space || byte == tab { value = value.dropLast() }
        guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == tab }) else {
            throw .badRequest("a control character in a header field")
        }
        return HTTPHeader(
            lowercase(UnsafeRawBufferPointer(rebasing: name)), string(UnsafeRawBufferPointer(rebasing: value)))
    }

    private static func lowercase(_ bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: bytes.count) { buffer in
            for (position, byte) in bytes.enumerated() {
                buffer[position] = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
            }
            return bytes.count
        }
    }

    private static func string(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }

    // MARK: Chunks

    /// `1a;extension` without its CRLF. Source: RFC 9112, 7.1.
    static func chunkSize(_ line: [UInt8]) throws(HTTP1Failure) -> Int {
        var size = 0
        var digits = 0
        for byte in line {
            guard let digit = hexDigit(byte) else { break }
            digits += 1
            // 15 hexadecimal digits cannot overflow; no valid request needs more.
            guard digits <= 15 else { throw .badRequest("a chunk size is too long") }
            size = size << 4 | digit
        }
        guard digits > 0 else { throw .badRequest("a chunk without a size") }
        let rest = line.dropFirst(digits)
        guard rest.isEmpty || rest.first == UInt8(ascii: ";"),
            rest.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == tab })
        else { throw .badRequest("malformed chunk size") }
        return size
    }

    // MARK: Characters

    private static let space = UInt8(ascii: " ")
    private static let tab = UInt8(ascii: "\t")

    static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    private static func hexDigit(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }

    /// RFC 9110, 5.6.2.
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}

/// The fields that determine the end of a request and the state of its connection.
private struct FramingFields {
    private var contentLength: Int?
    private var isChunked = false
    private var host: String?
    private var closes = false
    private var keepsAlive = false
    private var expectsContinue = false

    mutating func note(_ header: HTTPHeader) throws(HTTP1Failure) {
        switch header.name {
        case "content-length":
            // Even two equal lengths are rejected: a proxy may have read only one of them.
            guard contentLength == nil else { throw .badRequest("more than one content-length") }
            contentLength = try FramingFields.length(header.value)
        case "transfer-encoding":
            guard !isChunked else { throw .badRequest("more than one transfer-encoding") }
            guard header.value.lowercased() == "chunked" else {
                throw HTTP1Failure(status: 501, reason: "the only transfer-encoding understood is chunked")
            }
            isChunked = true
        case "host":
            guard host == nil else { throw .badRequest("more than one host") }
            host = header.value
        case "connection":
            for option in header.value.lowercased().split(separator: ",") {
                let option = option.drop { $0 == " " || $0 == "\t" }
                if option.hasPrefix("close") { closes = true }
                if option.hasPrefix("keep-alive") { keepsAlive = true }
            }
        case "expect":
            guard header.value.lowercased() == "100-continue" else {
                throw HTTP1Failure(status: 417, reason: "the only expectation understood is 100-continue")
            }
            expectsContinue = true
        default: break
        }
    }

    func apply(to head: inout HTTP1Head) throws(HTTP1Failure) {
        guard !(isChunked && contentLength != nil) else {
            throw .badRequest("both content-length and transfer-encoding")
        }
        guard !(isChunked && head.isVersion1_0) else { throw .badRequest("transfer-encoding in HTTP/1.0") }
        guard host != nil || head.isVersion1_0 else { throw .badRequest("no host") }
        guard Authority.isValid(host ?? ""), Authority.isValid(head.authority) else {
            throw .badRequest("malformed host")
        }
        if head.authority.isEmpty { head.authority = host ?? "" }
        head.body = isChunked ? .chunked : contentLength.map { .length($0) } ?? .none
        head.keepsAlive = !closes && (!head.isVersion1_0 || keepsAlive)
        // RFC 9110, 10.1.1: an HTTP/1.0 client's expectation is ignored.
        head.expectsContinue = expectsContinue && !head.isVersion1_0
    }

    private static func length(_ string: String) throws(HTTP1Failure) -> Int {
        // Digits only: no sign, list or inner space. 15 of them cannot overflow.
        guard !string.isEmpty, string.utf8.count <= 15, string.utf8.allSatisfy(HTTP1HeadReader.isDigit),
            let length = Int(string)
        else { throw .badRequest("malformed content-length") }
        return length
    }
}
