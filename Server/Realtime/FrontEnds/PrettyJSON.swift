/// Indents compact JSON piece by piece, two spaces a level, as the service does.
struct PrettyJSON {
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    /// An opening bracket whose first element hasn't arrived: an empty object is written on one line.
    private var isOpen = false

    static func string(_ compact: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(compact.count * 2)
        var pretty = PrettyJSON()
        pretty.append(compact, to: &output)
        output.append(UInt8(ascii: "\n"))
        return output
    }

    /// - Parameter compact: JSON, or the next piece of it, without spaces outside of strings.
    mutating func append(_ compact: [UInt8], to output: inout [UInt8]) {
        for byte in compact {
            if isInString {
                output.append(byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            let isClosing = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
            if isOpen, !isClosing { breakLine(&output) }
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                output.append(byte)
                depth += 1
                isOpen = true
                continue
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if !isOpen { breakLine(&output) }
                output.append(byte)
            case UInt8(ascii: ","):
                output.append(byte)
                breakLine(&output)
            case UInt8(ascii: ":"): output += [UInt8(ascii: " "), byte, UInt8(ascii: " ")]
            default:
                isInString = byte == UInt8(ascii: "\"")
                output.append(byte)
            }
            isOpen = false
        }
    }

    private func breakLine(_ output: inout [UInt8]) {
        output.append(UInt8(ascii: "\n"))
        output.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
    }
}
