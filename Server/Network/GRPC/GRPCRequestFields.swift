/// The fields of a call that the engine itself uses, read in one pass.
struct GRPCRequestFields {
    enum Timeout: Equatable {
        case none
        case malformed
        case nanoseconds(UInt64)
    }

    enum Encoding { case identity, gzip, unknown }

    private(set) var isGRPC = false
    private(set) var timeout = Timeout.none
    private(set) var encoding = Encoding.identity
    private(set) var acceptsGzip = false

    mutating func note(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        // The length distinguishes nearly all other fields before a byte is compared.
        switch name.count {
        case 12 where name.equals("content-type"): isGRPC = GRPCContentType.matches(value)
        case 12 where name.equals("grpc-timeout"):
            timeout = GRPCTimeout.nanoseconds(value).map { .nanoseconds($0) } ?? .malformed
        case 13 where name.equals("grpc-encoding"):
            encoding = value.equals("identity") ? .identity : value.equals("gzip") ? .gzip : .unknown
        case 20 where name.equals("grpc-accept-encoding"): acceptsGzip = GRPCRequestFields.lists(value, "gzip")
        default: break
        }
    }
}

extension GRPCRequestFields {
    /// Whether a comma-separated list has this member.
    static func lists(_ list: UnsafeRawBufferPointer, _ member: StaticString) -> Bool {
        var start = 0
        while start < list.count {
            var end = start
            while end < list.count, list[end] != UInt8(ascii: ",") { end += 1 }
            while start < end, list[start] == UInt8(ascii: " ") { start += 1 }
            var last = end
            while last > start, list[last - 1] == UInt8(ascii: " ") { last -= 1 }
            if UnsafeRawBufferPointer(rebasing: list[start..<last]).equals(member) { return true }
            start = end + 1
        }
        return false
    }
}

enum GRPCContentType {
    /// `application/grpc`, `application/grpc+proto`, `application/grpc;…`, but not gRPC-Web, which is handled as HTTP.
    static func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= 16 else { return false }
        if !UnsafeRawBufferPointer(rebasing: bytes[..<16]).equals("application/grpc") {
            // Media types are case-insensitive; the copy is made only for the rare client that uses upper case.
            let string = String(decoding: bytes[..<16], as: UTF8.self)
            guard string.lowercased() == "application/grpc" else { return false }
        }
        guard bytes.count > 16 else { return true }
        return bytes[16] == UInt8(ascii: "+") || bytes[16] == UInt8(ascii: ";") || bytes[16] == UInt8(ascii: " ")
    }

    static func matches(_ string: String) -> Bool {
        var string = string
        return string.withUTF8 { matches(UnsafeRawBufferPointer($0)) }
    }
}

/// `grpc-timeout`: at most eight digits and a unit.
package enum GRPCTimeout {
    /// Nanoseconds; nil when malformed.
    static func nanoseconds(_ string: UnsafeRawBufferPointer) -> UInt64? {
        var amount: UInt64 = 0
        guard let unit = string.last, string.count >= 2, string.count <= 9 else { return nil }
        for byte in string.dropLast() {
            guard HTTP1HeadReader.isDigit(byte) else { return nil }
            amount = amount * 10 + UInt64(byte - UInt8(ascii: "0"))
        }
        switch unit {
        case UInt8(ascii: "n"): return amount
        case UInt8(ascii: "u"): return amount * 1_000
        case UInt8(ascii: "m"): return amount * 1_000_000
        case UInt8(ascii: "S"): return amount * 1_000_000_000
        case UInt8(ascii: "M"): return amount * 60_000_000_000
        // Eight digits of hours can overflow 64 bits (10^8 * 3.6 * 10^12 > 2^64), so they are limited to 100 years.
        case UInt8(ascii: "H"): return min(amount, 876_600) * 3_600_000_000_000
        default: return nil
        }
    }

    static func nanoseconds(_ string: String) -> UInt64? {
        var string = string
        return string.withUTF8 { nanoseconds(UnsafeRawBufferPointer($0)) }
    }

    /// The shortest form that keeps the relevant precision.
    @inlinable package static func string(milliseconds: Int) -> String {
        milliseconds < 100_000_000 ? "\(max(0, milliseconds))m" : "\(min(99_999_999, milliseconds / 1_000))S"
    }
}
