/// The syntax of `Host` and `:authority`: a host and an optional port. Source: RFC 9110, 7.2; RFC 3986, 3.2.2.
enum Authority {
    private static let portDigitsMax = 5

    /// An empty value is valid, for targets without an authority. User information is not: RFC 9110, 4.2.4.
    static func isValid(_ string: String) -> Bool {
        let bytes = string.utf8
        var position = bytes.startIndex
        if bytes.first == UInt8(ascii: "[") {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let address = bytes[bytes.index(after: position)..<end]
            guard !address.isEmpty, address.allSatisfy(isAddressByte) else { return false }
            position = bytes.index(after: end)
        } else {
            while position < bytes.endIndex, bytes[position] != UInt8(ascii: ":") {
                guard isNameByte(bytes[position]) else { return false }
                position = bytes.index(after: position)
            }
        }
        guard position < bytes.endIndex else { return true }
        guard bytes[position] == UInt8(ascii: ":") else { return false }
        let port = bytes[bytes.index(after: position)...]
        return port.count <= portDigitsMax && port.allSatisfy(HTTP1HeadReader.isDigit)
    }

    /// Letters, digits, and the other characters of a registered name; names beyond ASCII are sent as Punycode.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "%"),
            UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("),
            UInt8(ascii: ")"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"),
            UInt8(ascii: "="):
            true
        default: false
        }
    }

    /// IPv6, with its zone, or a future address format.
    private static func isAddressByte(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ":") || isNameByte(byte)
    }
}
