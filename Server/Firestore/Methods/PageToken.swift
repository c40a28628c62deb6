import HearthModel

/// The start of the next page of a listing, and the read time of all its pages.
///
/// Encoded as unpadded base64url of fingerprint (8 bytes) · read time (8 bytes) · position. The fingerprint is that of
/// the request, so that invalid tokens and tokens of another listing are detected.
struct PageToken: Sendable {
    var readTime: Timestamp
    var position: [UInt8]

    init(readTime: Timestamp, position: [UInt8]) {
        self.readTime = readTime
        self.position = position
    }

    /// Nil for an empty string.
    /// - Throws: INVALID_ARGUMENT when it is not a token of this listing.
    init?(_ string: String, fingerprint: UInt64) throws(Status) {
        if string.isEmpty { return nil }
        guard let bytes = Self.decode(string), bytes.count >= 16, Self.number(bytes[0..<8]) == fingerprint else {
            throw .invalidArgument("invalid page token")
        }
        let microseconds = Int64(bitPattern: Self.number(bytes[8..<16]))
        // Anyone can make a token: its checksum is no secret.
        guard Timestamp.microsecondsRange.contains(microseconds) else { throw .invalidArgument("invalid page token") }
        readTime = Timestamp(microseconds: microseconds)
        position = Array(bytes[16...])
    }

    func string(fingerprint: UInt64) -> String {
        var bytes: [UInt8] = []
        for number in [fingerprint, UInt64(bitPattern: readTime.microseconds)] {
            withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        }
        return Self.encode(bytes + position)
    }

    /// FNV-1a over strings.
    static func fingerprint(_ strings: [String]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for string in strings {
            for byte in string.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
            hash = (hash ^ 0xFF) &* 0x0000_0100_0000_01B3
        }
        return hash
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func encode(_ bytes: [UInt8]) -> String {
        var string: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for index in 0...group.count { string.append(alphabet[Int(bits >> UInt32(18 - 6 * index)) & 63]) }
        }
        return String(decoding: string, as: UTF8.self)
    }

    private static func decode(_ string: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var bitCount = 0
        for character in string.utf8 {
            guard let value = alphabet.firstIndex(of: character) else { return nil }
            bits = bits << 6 | UInt32(value)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            }
        }
        return bytes
    }
}
