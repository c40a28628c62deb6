/// Finds the frame boundaries in a string that arrives in parts. They do not depend on how the parts are divided.
struct RealtimeFrameCutter {
    private var units = 0

    /// - Returns: positions in this part before which a new piece begins. At 0, the previous piece ends with the last
    ///   part.
    mutating func cuts(in part: UnsafeBufferPointer<UInt8>) -> [Int] {
        var cuts: [Int] = []
        for (position, byte) in part.enumerated() where byte & 0xC0 != 0x80 {
            // A character of four bytes is a surrogate pair.
            let width = byte >= 0xF0 ? 2 : 1
            if units + width > RealtimeFrameSplitter.pieceUnitsMax {
                cuts.append(position)
                units = 0
            }
            units += width
        }
        return cuts
    }

    mutating func cuts(in part: [UInt8]) -> [Int] { part.withUnsafeBufferPointer { cuts(in: $0) } }
}
