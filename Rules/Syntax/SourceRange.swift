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
    /// The number of characters before each piece of the source: a source may be one long line.
    private let charactersBefore: [Int]

    private static let pieceBytes = 128

    init(_ source: [UInt8]) {
        self.source = source
        var starts = [0]
        var before: [Int] = []
        var characters = 0
        for (offset, byte) in source.enumerated() {
            if offset % Self.pieceBytes == 0 { before.append(characters) }
            if Self.begins(byte) { characters += 1 }
            if byte == UInt8(ascii: "\n") { starts.append(offset + 1) }
        }
        before.append(characters)
        lineStarts = starts
        charactersBefore = before
    }

    /// Whether a byte of UTF-8 begins a character.
    private static func begins(_ byte: UInt8) -> Bool { byte & 0xC0 != 0x80 }

    /// Those before an offset.
    private func characters(before offset: Int) -> Int {
        let piece = offset / Self.pieceBytes
        return charactersBefore[piece] + source[piece * Self.pieceBytes..<offset].count(where: Self.begins)
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
        return (low + 1, characters(before: offset) - characters(before: lineStarts[low]) + 1)
    }
}
