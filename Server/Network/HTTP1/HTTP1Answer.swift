/// Encodes HTTP/1.1 responses: status line, fields, and the body with the appropriate framing.
struct HTTP1Answer {
    private enum Body {
        /// HEAD, 204, 304: the handler's body is dropped.
        case none
        case length(remaining: Int)
        case chunked
        /// HTTP/1.0 without a length: the end of the connection is the end of the body.
        case untilClose
    }

    private var body: Body
    /// The encoded head.
    let head: [UInt8]
    /// The connection cannot be reused after this response.
    let closesConnection: Bool

    init(
        status: Int, headers: [HTTPHeader], isHead: Bool, isVersion1_0: Bool, keepsAlive: Bool, date: [UInt8],
        serverHeader: String?
    ) {
        let declared = headers.firstValue("content-length").flatMap { Int($0) }
        if isHead || status == 204 || status == 304 {
            body = .none
        } else if let declared {
            body = .length(remaining: declared)
        } else {
            body = isVersion1_0 ? .untilClose : .chunked
        }
        var closes = !keepsAlive
        if case .untilClose = body { closes = true }
        closesConnection = closes
        var writer = HTTP1HeadWriter(status: status)
        for header in headers where !HTTP1Answer.isHopByHop(header.name) {
            writer.field(header.name, header.value)
        }
        if headers.firstValue("date") == nil { writer.field("date", date) }
        if let serverHeader, headers.firstValue("server") == nil { writer.field("server", serverHeader) }
        if case .chunked = body { writer.field("transfer-encoding", "chunked") }
        if closes {
            writer.field("connection", "close")
        } else if isVersion1_0 {
            writer.field("connection", "keep-alive")
        }
        head = writer.finish()
    }

    /// The server decides about these fields, not the handler.
    private static func isHopByHop(_ name: String) -> Bool {
        name == "connection" || name == "transfer-encoding" || name == "keep-alive"
    }

    mutating func write(_ bytes: [UInt8], to output: inout OutputQueue) {
        guard !bytes.isEmpty else { return }
        switch body {
        case .none: break
        case .untilClose: output.append(bytes)
        case .length(let remaining):
            precondition(bytes.count <= remaining, "more body than content-length says")
            body = .length(remaining: remaining - bytes.count)
            output.append(bytes)
        case .chunked:
            output.append(Array((String(bytes.count, radix: 16) + "\r\n").utf8))
            output.append(bytes)
            output.append([.cr, .lf])
        }
    }

    /// False when bytes are missing that `content-length` announced: then only closing the connection notifies the
    /// client.
    mutating func end(trailers: [HTTPHeader], to output: inout OutputQueue) -> Bool {
        switch body {
        case .none, .untilClose: return true
        case .length(let remaining): return remaining == 0
        case .chunked:
            var writer = HTTP1HeadWriter(string: "0\r\n")
            for trailer in trailers { writer.field(trailer.name, trailer.value) }
            output.append(writer.finish())
            return true
        }
    }
}

/// Appends lines of a head to a buffer; a value cannot end its own line.
struct HTTP1HeadWriter {
    private var bytes: [UInt8] = []

    init(string: String) { bytes.append(contentsOf: string.utf8) }

    init(status: Int) {
        bytes.reserveCapacity(256)
        bytes.append(contentsOf: "HTTP/1.1 \(status) \(HTTPReason.reason(status))\r\n".utf8)
    }

    mutating func field(_ name: String, _ value: String) {
        bytes.append(contentsOf: name.utf8)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(UInt8(ascii: " "))
        for byte in value.utf8 { bytes.append(HeaderValue.isAllowed(byte) ? byte : UInt8(ascii: " ")) }
        bytes.append(.cr)
        bytes.append(.lf)
    }

    mutating func field(_ name: String, _ value: [UInt8]) {
        bytes.append(contentsOf: name.utf8)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: value)
        bytes.append(.cr)
        bytes.append(.lf)
    }

    mutating func finish() -> [UInt8] {
        bytes.append(.cr)
        bytes.append(.lf)
        return bytes
    }
}

enum HeaderValue {
    /// Control characters in a value would end the field and begin another: a document's name must not be able to do
    /// this.
    static func isAllowed(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }
}

enum HTTPReason {
    static func reason(_ status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 499: "Client Closed Request"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }
}
