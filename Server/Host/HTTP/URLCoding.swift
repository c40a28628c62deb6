/// Percent-decoding of the parts of a URL. Source: RFC 3986, and the form encoding of HTML for queries.
package enum URLCoding {
    /// Decodes one part; nil when an escape is malformed or the result is not UTF-8.
    /// - Parameter plusIsSpace: as in queries.
    package static func decode(_ string: String, plusIsSpace: Bool = false) -> String? {
        decode(string[...], plusIsSpace: plusIsSpace)
    }

    package static func decode(_ string: Substring, plusIsSpace: Bool = false) -> String? {
        var string = string
        let isPlain = string.withUTF8 { bytes in
            !bytes.contains { $0 == UInt8(ascii: "%") || plusIsSpace && $0 == UInt8(ascii: "+") }
        }
        if isPlain { return String(string) }
        return string.withUTF8 { decode(bytes: $0, plusIsSpace: plusIsSpace) }
            .flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Decodes a name or a value of a form; nil when an escape is malformed.
    package static func decode(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        bytes.withUnsafeBufferPointer { decode(bytes: $0, plusIsSpace: true) }
    }

    private static func decode(bytes string: UnsafeBufferPointer<UInt8>, plusIsSpace: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(string.count)
        var iterator = string.makeIterator()
        while let byte = iterator.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = iterator.next().flatMap(digit), let low = iterator.next().flatMap(digit) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    /// A segment of a path, percent-encoded but for unreserved characters (RFC 3986, 2.3).
    package static func encode(_ segment: String) -> String {
        var bytes: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in segment.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The segments between the slashes of a path, still percent-encoded: an empty one, `a` and `b` for `/a/b`.
    package static func segments(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { String(Substring($0)) }
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// The parameters of a query in order; nil when one cannot be decoded.
    package static func parameters(_ query: String?) -> [(name: String, value: String)]? {
        guard let query, !query.isEmpty else { return [] }
        var parameters: [(name: String, value: String)] = []
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(parts[0], plusIsSpace: true),
                let value = decode(parts.count > 1 ? parts[1] : "", plusIsSpace: true)
            else { return nil }
            parameters.append((name, value))
        }
        return parameters
    }
}
