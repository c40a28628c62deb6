import CNghttp2

/// Response fields in nghttp2's form. The bytes live as long as this value; nghttp2 copies them.
package struct HTTP2Fields {
    private var bytes: [UInt8] = []
    private var spans: [(name: Int, value: Int, end: Int, isSecret: Bool)] = []

    package init() {}

    init(status: Int) { append(":status", String(status)) }

    /// - Parameter isSecret: the field must not enter a compression table.
    package mutating func append(_ name: String, _ value: String, isSecret: Bool = false) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let middle = bytes.count
        for byte in value.utf8 { bytes.append(HeaderValue.isAllowed(byte) ? byte : UInt8(ascii: " ")) }
        spans.append((start, middle, bytes.count, isSecret))
    }

    mutating func append(_ name: String, utf8 value: [UInt8]) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let middle = bytes.count
        bytes.append(contentsOf: value)
        spans.append((start, middle, bytes.count, false))
    }

    package mutating func append(_ headers: [HTTPHeader]) {
        for header in headers where !HTTP2Fields.isConnectionSpecific(header.name) {
            append(header.name, header.value)
        }
    }

    /// RFC 9113, 8.2.2: these make a message malformed.
    private static func isConnectionSpecific(_ name: String) -> Bool {
        switch name {
        case "connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection": true
        default: false
        }
    }

    package func withFields<Result>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
        bytes.withUnsafeBufferPointer { bytes in
            let base = bytes.baseAddress
            let fields = spans.map { span in
                http2_copied_field(
                    base.map { $0 + span.name }, span.value - span.name, base.map { $0 + span.value },
                    span.end - span.value, span.isSecret ? 1 : 0)
            }
            return fields.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
        }
    }
}
