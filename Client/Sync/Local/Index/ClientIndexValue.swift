import HearthModel
import HearthDocuments

/// The order-preserving bytes of values in client-side indexes. They are those of `IndexValue`, with one more type:
///
///     pending server timestamp: 16 and (local write time in µs + 2^63) in 8 bytes, between timestamps and strings
///
/// No encoding is a prefix of another one, so encodings can be concatenated. With every bit inverted they sort in
/// reverse order. An encoding longer than `sizeBytesMax` is truncated: entries with equal bytes then may have different
/// values. The documents that an index returns are matched against the query in any case.
struct ClientIndexValue {
    var bytes: [UInt8]
    var isCut: Bool

    static let sizeBytesMax = Limits.indexedValueSizeBytesMax
    private static let pendingTag: UInt8 = 0x16

    init(_ value: Value) {
        bytes = []
        Self.append(value, to: &bytes)
        isCut = bytes.count > Self.sizeBytesMax
        if isCut { bytes.removeLast(bytes.count - Self.sizeBytesMax) }
    }

    private static func append(_ value: Value, to bytes: inout [UInt8]) {
        switch value {
        case .array(let elements):
            bytes.append(IndexValue.Tag.array)
            for element in elements { append(element, to: &bytes) }
            bytes.append(IndexValue.Tag.terminator)
        case .map(let map):
            if let pending = PendingServerTimestamp(value) {
                bytes.append(pendingTag)
                let time = UInt64(bitPattern: pending.localWriteTime.microseconds)
                return IndexValue.appendBigEndian(time ^ (1 << 63), to: &bytes)
            }
            bytes.append(IndexValue.Tag.map)
            for field in map.fields {
                bytes.append(IndexValue.Tag.string)
                IndexValue.appendString(field.name, to: &bytes)
                append(field.value, to: &bytes)
            }
            bytes.append(IndexValue.Tag.terminator)
        default: IndexValue.append(value, to: &bytes)
        }
    }

    static func inverted(_ bytes: [UInt8]) -> [UInt8] { bytes.map { ~$0 } }
}

/// A position between encodings: before or after all that begin with the given bytes.
struct IndexPosition {
    var bytes: [UInt8]
    var isAfter: Bool

    static let lowest = IndexPosition(bytes: [], isAfter: false)
    static let highest = IndexPosition(bytes: [], isAfter: true)

    /// The same position in the reverse order.
    var inverted: IndexPosition { IndexPosition(bytes: ClientIndexValue.inverted(bytes), isAfter: !isAfter) }

    /// The lowest bytes after this position, below a prefix; nil when there are none.
    func key(below prefix: [UInt8]) -> [UInt8]? {
        isAfter ? CacheKey.successor(prefix + bytes) : prefix + bytes
    }

    static func isBelow(_ lhs: IndexPosition, _ rhs: IndexPosition) -> Bool {
        guard let left = lhs.key(below: []) else { return false }
        guard let right = rhs.key(below: []) else { return true }
        return UTF8Order.compare(left, right) < 0
    }
}

/// The values of one segment that satisfy a sub-target's inequalities, in ascending order.
struct IndexIntervals {
    struct Interval {
        var lower: IndexPosition
        var upper: IndexPosition
    }

    private(set) var intervals = [Interval(lower: .lowest, upper: .highest)]

    mutating func restrict(_ op: Filter.Operator, _ operand: Value) {
        let value = ClientIndexValue(operand)
        let before = IndexPosition(bytes: value.bytes, isAfter: false)
        let after = IndexPosition(bytes: value.bytes, isAfter: true)
        // `<`, `<=`, `>` and `>=` compare only values of one type.
        let tag = [value.bytes[0]]
        let type = Interval(
            lower: IndexPosition(bytes: tag, isAfter: false), upper: IndexPosition(bytes: tag, isAfter: true))
        switch op {
        // A truncated value determines only the position of all values with the same prefix.
        case .greaterThan: intersect(with: [Interval(lower: value.isCut ? before : after, upper: type.upper)])
        case .greaterThanOrEqual: intersect(with: [Interval(lower: before, upper: type.upper)])
        case .lessThan: intersect(with: [Interval(lower: type.lower, upper: value.isCut ? after : before)])
        case .lessThanOrEqual: intersect(with: [Interval(lower: type.lower, upper: after)])
        case .notEqual:
            keepNotNull()
            cutOut(value)
        case .notIn:
            guard case .array(let elements) = operand else { return }
            keepNotNull()
            if elements.contains(.null) { intervals = [] }
            for element in elements { cutOut(ClientIndexValue(element)) }
        default: break
        }
    }

    private mutating func keepNotNull() {
        let null = IndexPosition(bytes: [IndexValue.Tag.null], isAfter: true)
        intersect(with: [Interval(lower: null, upper: .highest)])
    }

    private mutating func cutOut(_ value: ClientIndexValue) {
        if value.isCut { return }
        intersect(with: [
            Interval(lower: .lowest, upper: IndexPosition(bytes: value.bytes, isAfter: false)),
            Interval(lower: IndexPosition(bytes: value.bytes, isAfter: true), upper: .highest),
        ])
    }

    /// Intersects with intervals that are in order and do not touch.
    private mutating func intersect(with others: [Interval]) {
        intervals = intervals.flatMap { mine in
            others.compactMap { other in
                let lower = IndexPosition.isBelow(mine.lower, other.lower) ? other.lower : mine.lower
                let upper = IndexPosition.isBelow(mine.upper, other.upper) ? mine.upper : other.upper
                return IndexPosition.isBelow(lower, upper) ? Interval(lower: lower, upper: upper) : nil
            }
        }
    }

    /// In the order of an index segment.
    func ordered(descending: Bool) -> [Interval] {
        if !descending { return intervals }
        return intervals.reversed().map { Interval(lower: $0.upper.inverted, upper: $0.lower.inverted) }
    }
}
