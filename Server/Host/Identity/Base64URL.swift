import HearthWire

/// base64url without padding. Source: RFC 7515, appendix C.
package enum Base64URL {
    package static func encode(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var string: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            let bits = part.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - part.count))
            for index in 0...part.count { string.append(alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)]) }
        }
        return String(decoding: string, as: UTF8.self)
    }

    /// Strict: nil for everything that `encode` does not return, such as padding, characters of the other alphabet, and
    /// bits behind the last byte.
    package static func decode(_ string: ArraySlice<UInt8>) -> [UInt8]? {
        guard let bytes = Array(string).withUnsafeBytes({ Base64.decode($0) }) else { return nil }
        return encode(bytes).utf8.elementsEqual(string) ? bytes : nil
    }
}
