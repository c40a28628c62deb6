import HearthConcurrency

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
        status: Int, headers: [HTTPHeader], isHead: Bool, isVersion1_0: Bool, keepsAlive: Bool, date: [UInt8]
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

    mutating func write(_ bytes: [UInt8], to output: inout OutputQueue) throws(BrokenInvariant) {
        guard !bytes.isEmpty else { return }
        switch body {
        case .none: break
        case .untilClose: output.append(bytes)
        case .length(let remaining):
            guard bytes.count <= remaining else {
                throw BrokenInvariant("a response's body is not longer than its content-length")
            }
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
