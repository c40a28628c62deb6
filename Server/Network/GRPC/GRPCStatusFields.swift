import HearthModel

/// `grpc-status` and `grpc-message`.
package enum GRPCStatusFields {
    /// The maximum size of a message in bytes. Clients reject trailers of more than 8 KiB, and would report that
    /// instead of the error; an escape has three bytes for one.
    static let messageBytesMax = 1024

    static func append(_ status: Status, to fields: inout HTTP2Fields) {
        fields.append("grpc-status", String(status.code.rawValue))
        if !status.message.isEmpty { fields.append("grpc-message", utf8: percentEncoded(cut(status.message))) }
    }

    /// The start of a message, up to the end of a character.
    private static func cut(_ message: String) -> String {
        if message.utf8.count <= messageBytesMax { return message }
        var end = message.utf8.index(message.startIndex, offsetBy: messageBytesMax)
        while String.Index(end, within: message.unicodeScalars) == nil { end = message.utf8.index(before: end) }
        return String(message[..<end]) + " …"
    }

    /// Source: "gRPC over HTTP2", Percent-Encoded: printable ASCII except `%` is not encoded.
    static func percentEncoded(_ string: String) -> [UInt8] {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(string.utf8.count)
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in string.utf8 {
            if byte >= 0x20 && byte <= 0x7E && byte != UInt8(ascii: "%") {
                encoded.append(byte)
            } else {
                encoded.append(UInt8(ascii: "%"))
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
        return encoded
    }

    /// Invalid escapes stay as they are: an encoding error must not lose a message.
    package static func percentDecoded(_ string: String) -> String {
        let bytes = Array(string.utf8)
        var decoded: [UInt8] = []
        var position = 0
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: "%"), position + 2 < bytes.count,
                let high = hex(bytes[position + 1]), let low = hex(bytes[position + 2])
            {
                decoded.append(high << 4 | low)
                position += 3
            } else {
                decoded.append(bytes[position])
                position += 1
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    private static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
