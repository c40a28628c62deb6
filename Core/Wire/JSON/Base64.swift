/// Base64. Source: RFC 4648; readers of proto3 JSON accept both alphabets, with or without padding.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlSafeAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The value of each character, 0xff for those of neither alphabet.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xff, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        for (value, character) in urlSafeAlphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    /// Appends the standard alphabet with padding.
    package static func encode(_ content: UnsafeRawBufferPointer, into result: inout [UInt8]) {
        encode(content, alphabet, isPadded: true, into: &result)
    }

    /// The standard alphabet with padding.
    package static func encode(_ content: [UInt8]) -> String {
        var result: [UInt8] = []
        content.withUnsafeBytes { encode($0, into: &result) }
        return String(decoding: result, as: UTF8.self)
    }

    /// The URL-safe alphabet without padding, for page tokens and JSON web tokens.
    package static func encodeURLSafe(_ content: [UInt8]) -> String {
        var result: [UInt8] = []
        content.withUnsafeBytes { encode($0, urlSafeAlphabet, isPadded: false, into: &result) }
        return String(decoding: result, as: UTF8.self)
    }

    private static func encode(
        _ content: UnsafeRawBufferPointer, _ alphabet: [UInt8], isPadded: Bool, into result: inout [UInt8]
    ) {
        alphabet.withUnsafeBufferPointer { alphabet in
            var index = 0
            while index + 3 <= content.count {
                let group = UInt32(content[index]) << 16 | UInt32(content[index + 1]) << 8 | UInt32(content[index + 2])
                result.append(alphabet[Int(group >> 18)])
                result.append(alphabet[Int(group >> 12 & 63)])
                result.append(alphabet[Int(group >> 6 & 63)])
                result.append(alphabet[Int(group & 63)])
                index += 3
            }
            let rest = content.count - index
            if rest == 0 { return }
            let group = UInt32(content[index]) << 16 | (rest == 2 ? UInt32(content[index + 1]) << 8 : 0)
            result.append(alphabet[Int(group >> 18)])
            result.append(alphabet[Int(group >> 12 & 63)])
            if rest == 2 { result.append(alphabet[Int(group >> 6 & 63)]) }
            if isPadded { for _ in rest..<3 { result.append(UInt8(ascii: "=")) } }
        }
    }

    /// Reads either alphabet, with or without padding; nil when it is neither. Remaining bits at the end are ignored,
    /// as Google's parsers do.
    package static func decode(_ string: UnsafeRawBufferPointer) -> [UInt8]? {
        var count = string.count
        if count > 0, string[count - 1] == UInt8(ascii: "=") {
            guard count.isMultiple(of: 4) else { return nil }
            count -= string[count - 2] == UInt8(ascii: "=") ? 2 : 1
        }
        guard count % 4 != 1 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(count / 4 * 3 + 2)
        var group: UInt32 = 0
        var bits = 0
        for index in 0..<count {
            let value = values[Int(string[index])]
            if value == 0xff { return nil }
            group = group << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                result.append(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
            }
        }
        return result
    }

    package static func decode(_ string: String) -> [UInt8]? {
        Array(string.utf8).withUnsafeBytes { decode($0) }
    }
}
