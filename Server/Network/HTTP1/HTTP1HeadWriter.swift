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
