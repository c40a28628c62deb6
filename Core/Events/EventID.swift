import HearthModel

/// The id of an event: the same in each attempt, after each restart, and different for each trigger.
///
///     version (16 hex digits) - subject (16) - trigger (8)
///
/// It sorts by commit, and is a valid document id. The hashes are FNV-1a, which is fixed for all versions of Hearth.
package struct EventID: Sendable, Hashable {
    package let string: String

    /// - Parameters:
    ///   - version: of the commit.
    ///   - incarnation: of the database.
    ///   - subject: the full name of the document, or the namespace and the location.
    ///   - trigger: its name.
    package init(version: Int64, incarnation: Int64, subject: [UInt8], trigger: String) {
        var hash = StableHash()
        withUnsafeBytes(of: incarnation.bigEndian) { hash.combine($0) }
        subject.withUnsafeBytes { hash.combine($0) }
        var name = StableHash()
        Array(trigger.utf8).withUnsafeBytes { name.combine($0) }
        let folded = UInt32(truncatingIfNeeded: name.value ^ (name.value >> 32))
        string =
            Self.hexadecimal(UInt64(bitPattern: version), 16) + "-" + Self.hexadecimal(hash.value, 16) + "-"
            + Self.hexadecimal(UInt64(folded), 8)
    }

    private static func hexadecimal(_ value: UInt64, _ digits: Int) -> String {
        let string = String(value, radix: 16)
        return String(repeating: "0", count: digits - string.utf8.count) + string
    }
}

/// FNV-1a with 64 bits.
struct StableHash {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func combine(_ bytes: UnsafeRawBufferPointer) {
        for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }
}
