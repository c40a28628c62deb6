/// UUIDs of version 4. Source: RFC 9562.
enum UUIDString {
    static func random() -> String { from(.random(in: .min ... .max), .random(in: .min ... .max)) }

    /// The UUID of 122 of these bits.
    static func from(_ first: UInt64, _ second: UInt64) -> String {
        let high = first & ~0xF000 | 0x4000
        let low = second & ~(3 << 62) | 2 << 62
        func digits(_ number: UInt64, _ count: Int) -> String {
            let string = String(number, radix: 16)
            return String(repeating: "0", count: count - string.utf8.count) + string
        }
        return "\(digits(high >> 32, 8))-\(digits(high >> 16 & 0xFFFF, 4))-\(digits(high & 0xFFFF, 4))"
            + "-\(digits(low >> 48, 4))-\(digits(low & 0xFFFF_FFFF_FFFF, 12))"
    }
}
