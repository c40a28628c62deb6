/// Makes frames from a string that arrives in parts.
struct RealtimePieceFramer {
    private var cutter = RealtimeFrameCutter()
    /// The beginning of the next frame.
    private var begun: [UInt8] = []

    /// - Returns: the frames that are complete.
    mutating func take(_ part: [UInt8]) -> [[UInt8]] {
        var frames: [[UInt8]] = []
        var start = 0
        for cut in cutter.cuts(in: part) {
            frames.append(begun + part[start..<cut])
            begun = []
            start = cut
        }
        begun += part[start...]
        return frames
    }

    /// The last frame.
    mutating func finish() -> [UInt8] {
        defer { self = RealtimePieceFramer() }
        return begun
    }
}
