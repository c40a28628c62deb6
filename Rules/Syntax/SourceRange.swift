/// A range of a source, in bytes from its start.
struct SourceRange: Sendable, Hashable {
    var start: Int32
    var end: Int32

    init(_ start: Int, _ end: Int) {
        self.start = Int32(clamping: start)
        self.end = Int32(clamping: end)
    }

    static let none = SourceRange(0, 0)

    func through(_ other: SourceRange) -> SourceRange { SourceRange(Int(start), Int(other.end)) }
}

/// Finds lines and columns of offsets.
struct LineIndex: Sendable {
    private let source: [UInt8]
    private let lineStarts: [Int]

    init(_ source: [UInt8]) {
        self.source = source
        var starts = [0]
        for (offset, byte) in source.enumerated() where byte == UInt8(ascii: "\n") { starts.append(offset + 1) }
        lineStarts = starts
    }

    /// Line and column, from 1; columns count characters (code points), not bytes.
    func position(_ offset: Int32) -> (line: Int, column: Int) {
        let offset = min(Int(offset), source.count)
        var low = 0
        var high = lineStarts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if lineStarts[middle] <= offset { low = middle } else { high = middle }
        }
        let start = lineStarts[low]
        let characters = source[start..<offset].count { $0 & 0xC0 != 0x80 }
        return (low + 1, characters + 1)
    }
}
