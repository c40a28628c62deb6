import HearthModel

/// A file of the log, of a fixed size, with the records from `first` on.
///
///     mark 8 · format 8 · number 8 · first 8 · salt 8 · owner 8 · size of the file 8 · checksum 8
///     the same again at byte 512
///     from byte 1024 on: records
///
/// Records with that sequence or a later one in the files before are void. So a record whose `write` or `synchronize`
/// failed is made void without touching its file, of which the system may now show something else than the disk has.
struct LogSegment: Equatable {
    /// Rises from file to file; the file's name.
    var number: UInt64
    /// The sequence of its first record.
    var first: UInt64
    /// Distinguishes its records from those of the file's last use.
    var salt: UInt64
    /// The number of the base that it belongs to.
    var owner: UInt64
    var sizeBytes: Int

    var name: String { String(number) }

    private static let mark: UInt64 = 0x4845_4152_5448_4C47
    private static let format: UInt64 = 1
    private static let summedWords = 7
    private static let copyOffset = 512
    static let headerBytes = 1024
    /// More than any file has: a file has the size of the largest record, at least.
    static let sizeBytesMax = 1 << 30
    /// More than are ever used; only damaged files have greater numbers.
    static let numberMax = UInt64.max / 4

    var header: [UInt8] {
        var words = [Self.mark, Self.format, number, first, salt, owner, UInt64(sizeBytes)]
        words.append(words.withUnsafeBytes { LogChecksum.sum($0.baseAddress.unsafelyUnwrapped, $0.count, 0, 0) })
        var bytes = [UInt8](repeating: 0, count: Self.headerBytes)
        for offset in [0, Self.copyOffset] {
            bytes.withUnsafeMutableBytes { bytes in
                for (index, word) in words.enumerated() {
                    bytes.storeBytes(of: word.littleEndian, toByteOffset: offset + 8 * index, as: UInt64.self)
                }
            }
        }
        return bytes
    }

    /// The segment of a header; nil when neither copy is whole: the making of the file was interrupted, or it is damaged.
    init?(header: UnsafeRawBufferPointer) throws(Status) {
        guard let words = Self.words(header, 0) ?? Self.words(header, Self.copyOffset) else { return nil }
        guard words[2] < Self.numberMax, words[3] < Self.numberMax, words[6] <= Self.sizeBytesMax else { return nil }
        if words[1] != Self.format {
            throw .failedPrecondition("The log has the format \(words[1]), which this version does not know.")
        }
        self.init(number: words[2], first: words[3], salt: words[4], owner: words[5], sizeBytes: Int(words[6]))
    }

    init(number: UInt64, first: UInt64, salt: UInt64, owner: UInt64, sizeBytes: Int) {
        self.number = number
        self.first = first
        self.salt = salt
        self.owner = owner
        self.sizeBytes = sizeBytes
    }

    private static func words(_ header: UnsafeRawBufferPointer, _ offset: Int) -> [UInt64]? {
        guard header.count >= headerBytes else { return nil }
        let words = (0...summedWords).map { index in
            UInt64(littleEndian: header.loadUnaligned(fromByteOffset: offset + 8 * index, as: UInt64.self))
        }
        let sum = words.withUnsafeBytes { LogChecksum.sum($0.baseAddress.unsafelyUnwrapped, 8 * summedWords, 0, 0) }
        return words[0] == mark && words[summedWords] == sum ? words : nil
    }
}
