import HearthModel

/// `grpc-status` and `grpc-message`.
enum GRPCStatusFields {
    static func append(_ status: Status, to fields: inout HTTP2Fields) {
        fields.append("grpc-status", String(status.code.rawValue))
        if !status.message.isEmpty { fields.append("grpc-message", utf8: percentEncoded(status.message)) }
    }

    /// Source: gRPC over HTTP/2, Percent-Encoded: printable ASCII but for `%` stays.
    static func percentEncoded(_ text: String) -> [UInt8] {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(text.utf8.count)
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
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

    /// What isn't a valid escape stays as it is: a message must never be lost to its encoding.
    static func percentDecoded(_ text: String) -> String {
        let bytes = Array(text.utf8)
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

enum GRPCContentType {
    /// `application/grpc`, `application/grpc+proto`, `application/grpc;…`, but not gRPC-Web, which is an HTTP affair.
    static func matches<Bytes: Sequence<UInt8>>(_ bytes: Bytes) -> Bool {
        var iterator = bytes.makeIterator()
        for expected in "application/grpc".utf8 {
            guard let byte = iterator.next() else { return false }
            let isUpper = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            guard (isUpper ? byte | 0x20 : byte) == expected else { return false }
        }
        guard let next = iterator.next() else { return true }
        return next == UInt8(ascii: "+") || next == UInt8(ascii: ";") || next == UInt8(ascii: " ")
    }

    static func matches(_ text: String) -> Bool { matches(text.utf8) }
}

/// `grpc-timeout`: at most eight digits and a unit.
enum GRPCTimeout {
    /// Nanoseconds; nil when malformed.
    static func nanoseconds(_ text: String) -> UInt64? {
        var amount: UInt64 = 0
        let digits = text.utf8.dropLast()
        guard let unit = text.utf8.last, !digits.isEmpty, digits.count <= 8 else { return nil }
        for byte in digits {
            guard HTTP1HeadReader.isDigit(byte) else { return nil }
            amount = amount * 10 + UInt64(byte - UInt8(ascii: "0"))
        }
        switch unit {
        case UInt8(ascii: "n"): return amount
        case UInt8(ascii: "u"): return amount * 1_000
        case UInt8(ascii: "m"): return amount * 1_000_000
        case UInt8(ascii: "S"): return amount * 1_000_000_000
        case UInt8(ascii: "M"): return amount * 60_000_000_000
        // Eight digits of hours still fit: 10^8 * 3.6 * 10^12 < 2^64 is false, so they are cut at 100 years.
        case UInt8(ascii: "H"): return min(amount, 876_600) * 3_600_000_000_000
        default: return nil
        }
    }

    /// The shortest form that loses nothing that matters.
    static func text(milliseconds: Int) -> String {
        milliseconds < 100_000_000 ? "\(max(0, milliseconds))m" : "\(min(99_999_999, milliseconds / 1_000))S"
    }
}
