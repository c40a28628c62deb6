import HearthModel

/// How much of a log the base contains: a record in the base's `meta`, which users of the store never see.
///
///     sequence 8 · segment 8 · identity 8, the highest byte first
struct LogPosition: Equatable {
    /// The sequence of the last record that is in the base; 0 when there is none.
    var sequence: UInt64 = 0
    /// The log's segment that had it.
    var segment: UInt64 = 0
    /// A number that only this database has, and all files of its log. 0 before the first of them: it is durable in the
    /// base before a file has it. So the log of another database is never taken for this one's.
    var identity: UInt64 = 0

    /// No other record has this name.
    static let key: [UInt8] = [0xFF, 0xFF] + Array("hearth-log".utf8)

    init(sequence: UInt64 = 0, segment: UInt64 = 0, identity: UInt64 = 0) {
        self.sequence = sequence
        self.segment = segment
        self.identity = identity
    }

    private static let sizeBytes = 24

    /// The position of a base; that of an empty log when it has none.
    init(_ snapshot: any Snapshot) throws(Status) {
        guard let bytes = try snapshot.get(.meta, Self.key) else { return }
        guard bytes.count == Self.sizeBytes else {
            throw Status(.dataLoss, "The position of the log has \(bytes.count) bytes.")
        }
        bytes.withUnsafeBytes { bytes in
            sequence = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
            segment = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            identity = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
        }
    }

    var bytes: [UInt8] {
        [sequence, segment, identity].flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
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
