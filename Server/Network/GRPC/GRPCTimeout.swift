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
    package static func string(milliseconds: Int) -> String {
        milliseconds < 100_000_000 ? "\(max(0, milliseconds))m" : "\(min(99_999_999, milliseconds / 1_000))S"
    }
}
