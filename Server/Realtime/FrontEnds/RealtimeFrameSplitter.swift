/// Splits a message into the strings of its frames.
enum RealtimeFrameSplitter {
    /// In UTF-16 units, as clients count.
    static let pieceUnitsMax = 16384

    /// - Parameter message: JSON, and an object: a bare number would be read as a count.
    /// - Returns: the message, or the number of its pieces and the pieces. No character is split.
    static func frames(of message: [UInt8]) -> [[UInt8]] {
        assert(message.first == UInt8(ascii: "{"), "a message is an object")
        // UTF-8 never has fewer bytes than UTF-16 has units.
        if message.count <= pieceUnitsMax { return [message] }
        let cuts = message.withUnsafeBufferPointer(cuts)
        if cuts.count == 1 { return [message] }
        var frames = [Array(String(cuts.count).utf8)]
        frames.reserveCapacity(cuts.count + 1)
        var start = 0
        for cut in cuts {
            frames.append(Array(message[start..<cut]))
            start = cut
        }
        return frames
    }

    /// The ends of the pieces.
    private static func cuts(_ message: UnsafeBufferPointer<UInt8>) -> [Int] {
        var cutter = RealtimeFrameCutter()
        return cutter.cuts(in: message) + [message.count]
    }
}
