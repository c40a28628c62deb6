import HearthModel

/// How much of a log the base contains: a record in the base's `meta`, which users of the store never see.
///
///     sequence 8 · segment 8 · begun 8 · owner 8 · flags 8, big-endian
///
/// Without the flags in files of a format before version 4.
struct LogPosition: Equatable {
    /// The sequence of the last record that is in the base; 0 when there is none.
    var sequence: UInt64 = 0
    /// The number of the last segment that was begun by then, or tried: later ones have greater numbers, so that none is used
    /// twice.
    var segment: UInt64 = 0
    /// The sequence of the last record of which the base may have a part. Without the log up to here it is torn.
    var begun: UInt64 = 0
    /// The base's random number, which is also in the segments of its log; 0 when it has none yet.
    var owner: UInt64 = 0
    /// Whether a log was begun and not removed since: a base with this mark has lost its log when there is none. Set before the
    /// first record of a log is acknowledged, deleted before the log is removed. The first flag.
    var hasLog = false

    /// No other record has this name.
    static let key: [UInt8] = [0xFF, 0xFF] + Array("hearth-log".utf8)
    private static let (sizeBytes, formerSizeBytes) = (40, 32)

    init() {}

    /// The position of a base; that of an empty log when it has none.
    init(_ snapshot: any Snapshot) throws(Status) {
        guard let bytes = try snapshot.get(.meta, Self.key) else { return }
        guard [Self.sizeBytes, Self.formerSizeBytes].contains(bytes.count) else {
            throw Status(.dataLoss, "The position of the log has \(bytes.count) bytes.")
        }
        let flags = bytes.withUnsafeBytes { bytes in
            func number(_ offset: Int) -> UInt64 {
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            }
            (sequence, segment, begun, owner) = (number(0), number(8), number(16), number(24))
            return bytes.count == Self.sizeBytes ? number(32) : 0
        }
        guard [segment, begun].allSatisfy({ $0 < LogSegment.numberMax }), sequence <= begun, flags <= 1 else {
            throw Status(.dataLoss, "The position of the log is damaged.")
        }
        hasLog = flags == 1
    }

    var bytes: [UInt8] {
        [sequence, segment, begun, owner, hasLog ? 1 : 0].flatMap { number in
            withUnsafeBytes(of: number.bigEndian) { Array($0) }
        }
    }

    /// Whether a key is the position's.
    @inline(__always)
    static func isKey(_ keyspace: Keyspace, _ key: [UInt8]) -> Bool { keyspace == .meta && key == Self.key }

    /// A range without the position's record.
    static func parts(_ keyspace: Keyspace, _ range: KeyRange) -> [KeyRange] {
        guard keyspace == .meta, range.contains(key) else { return [range] }
        return [KeyRange(lower: range.lower, upper: key), KeyRange(lower: key + [0], upper: range.upper)]
    }
}
