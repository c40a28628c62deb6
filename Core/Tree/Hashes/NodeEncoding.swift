/// The encoding of values in hashed strings.
enum NodeEncoding {
    static func append(priority: Scalar?, to string: inout [UInt8], numbers: HashedNumbers = .exact) {
        guard let priority else { return }
        string.append(contentsOf: "priority:".utf8)
        append(priority, to: &string, isQuoted: false, numbers: numbers)
        string.append(UInt8(ascii: ":"))
    }

    /// - Parameter isQuoted: whether a string is in quotes, with `\` before `\` and `"`.
    static func append(
        _ value: Scalar, to string: inout [UInt8], isQuoted: Bool, numbers: HashedNumbers = .exact
    ) {
        switch value {
        case .bool(let value): string.append(contentsOf: (value ? "boolean:true" : "boolean:false").utf8)
        case .integer(let value): append(numbers.bits(Double(value)), to: &string)
        case .double(let value): append(numbers.bits(value), to: &string)
        case .string(let value):
            string.append(contentsOf: "string:".utf8)
            if isQuoted { appendQuoted(value, to: &string) } else { string.append(contentsOf: value.utf8) }
        case .deferred: preconditionFailure("a deferred value has no hash")
        }
    }

    private static let hexadecimalDigits = Array("0123456789abcdef".utf8)

    private static func append(_ bits: UInt64, to string: inout [UInt8]) {
        string.append(contentsOf: "number:".utf8)
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            string.append(hexadecimalDigits[Int(bits >> shift & 15)])
        }
    }

    static func appendQuoted(_ string: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { output.append(UInt8(ascii: "\\")) }
            output.append(byte)
        }
        output.append(UInt8(ascii: "\""))
    }
}
