/// Finds the number of a request in a string that isn't stored: `{"t":"d","d":{"r":7,…}}`, with its members in any
/// order.
struct RequestNumberFinder {
    private static let digitsMax = 18
    private static let nameBytesMax = 1

    private(set) var number: Int64?
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    /// The last string at the depth of the request's members, or above; at most as long as the names of interest.
    private var string: [UInt8] = []
    private var isStringWhole = true
    private var isInRequest = false
    private var digits: [UInt8]?

    mutating func scan(through bytes: [UInt8]) {
        bytes.withUnsafeBufferPointer { bytes in
            for byte in bytes {
                if number != nil { return }
                take(byte)
            }
        }
    }

    private mutating func take(_ byte: UInt8) {
        if isInString {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString = false
                return
            }
            if string.count < Self.nameBytesMax { string.append(byte) } else { isStringWhole = false }
            return
        }
        switch byte {
        case UInt8(ascii: "\""):
            isInString = true
            isStringWhole = true
            string.removeAll(keepingCapacity: true)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            end()
            depth -= 1
            if depth == 1 { isInRequest = false }
        case UInt8(ascii: ","): end()
        case UInt8(ascii: ":"):
            if depth == 1 { isInRequest = isStringWhole && string == [UInt8(ascii: "d")] }
            if depth == 2, isInRequest, isStringWhole, string == [UInt8(ascii: "r")] { digits = [] }
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            if let count = digits?.count, count < Self.digitsMax { digits?.append(byte) }
        default: break
        }
    }

    private mutating func end() {
        guard depth == 2, let found = digits else { return }
        number = Int64(String(decoding: found, as: UTF8.self))
        digits = nil
    }
}
