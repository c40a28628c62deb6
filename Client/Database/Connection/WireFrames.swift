/// Splits messages into frames. A message that is too long for one frame becomes a frame with the number of pieces,
/// then the pieces.
enum WireFrames {
    static func frames(of string: [UInt8]) -> [[UInt8]] {
        // A string never has more UTF-16 units than bytes.
        if string.count <= WireLimits.frameUnitsMax { return [string] }
        var pieces: [[UInt8]] = []
        var start = 0
        var index = 0
        var units = 0
        while index < string.count {
            let (bytes, width) = size(of: string[index])
            if units + width > WireLimits.frameUnitsMax {
                pieces.append(Array(string[start..<index]))
                start = index
                units = 0
            }
            units += width
            index += bytes
        }
        if pieces.isEmpty { return [string] }
        pieces.append(Array(string[start...]))
        return [Array(String(pieces.count).utf8)] + pieces
    }

    /// Bytes and UTF-16 units of the character that begins with this byte.
    private static func size(of first: UInt8) -> (bytes: Int, units: Int) {
        switch first {
        case 0..<0x80: (1, 1)
        case 0..<0xE0: (2, 1)
        case 0..<0xF0: (3, 1)
        default: (4, 2)
        }
    }
}
