import HearthJSON

/// Indents compact JSON piece by piece, two spaces a level, as the service does. It follows the outline instead of
/// reading tokens, because a piece may end anywhere.
struct PrettyJSON {
    private var outline = JSONOutline()
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
            let depth = outline.depth
            guard outline.take(byte) else {
                output.append(byte)
                continue
            }
            let isClosing = outline.depth < depth
            if isOpen, !isClosing { breakLine(depth, &output) }
            if isClosing, !isOpen { breakLine(outline.depth, &output) }
            isOpen = outline.depth > depth
            switch byte {
            case UInt8(ascii: ","):
                output.append(byte)
                breakLine(depth, &output)
            case UInt8(ascii: ":"): output += [UInt8(ascii: " "), byte, UInt8(ascii: " ")]
            default: output.append(byte)
            }
        }
    }

    private func breakLine(_ depth: Int, _ output: inout [UInt8]) {
        output.append(UInt8(ascii: "\n"))
        output.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
    }
}
