import HearthEngine
import HearthModel

/// The values that filters on one field allow, as ascending disjoint ranges of encoded values.
///
/// Every filter except the array ones is a union of ranges in the order of values; filters on one field under AND
/// intersect. When the ranges are not exact, because an operand is longer than an index stores, `needsCheck` is set.
struct ValueRanges: Sendable {
    private(set) var ranges: [KeyRange]
    /// Documents that match the ranges must still be checked.
    private(set) var needsCheck = false

    /// Every value: the field exists.
    static let any = ValueRanges(ranges: [KeyRange(lower: [IndexValue.Tag.null], upper: [0xFF])])
    static let empty = ValueRanges(ranges: [])

    /// Path keys from one on, up to and excluding another.
    static func names(from lower: [UInt8], to upper: [UInt8] = [0xFF]) -> ValueRanges {
        ValueRanges(ranges: [KeyRange(lower: lower, upper: upper)])
    }

    init(ranges: [KeyRange]) {
        self.ranges = ranges.filter { !$0.isEmpty }
    }

    var isEmpty: Bool { ranges.isEmpty }

    /// The encoded value when the ranges contain exactly one.
    var point: [UInt8]? {
        guard ranges.count == 1, !needsCheck, KeyRange(prefix: ranges[0].lower) == ranges[0],
            IndexValue.end(of: ranges[0].lower, from: 0, complemented: false)?.end == ranges[0].lower.count
        else { return nil }
        return ranges[0].lower
    }

    /// The common first bytes when all values share one prefix range, though it may be a cut one.
    var singlePrefix: [UInt8]? {
        guard ranges.count == 1, KeyRange(prefix: ranges[0].lower) == ranges[0] else { return nil }
        return ranges[0].lower
    }

    // MARK: From filters

    init(_ filter: Filter.UnaryOperator) {
        switch filter {
        case .isNull: self = .class(IndexValue.Tag.null)
        case .isNaN: self = .class(IndexValue.Tag.nan)
        case .isNotNull: self = ValueRanges(ranges: [KeyRange(lower: [IndexValue.Tag.null + 1], upper: [0xFF])])
        case .isNotNaN: self = ValueRanges(.isNotNull).subtracting(.class(IndexValue.Tag.nan))
        }
    }

    init(_ filter: Filter.Operator, _ operand: Value) {
        switch filter {
        case .equal: self = Self.equal(operand)
        case .notEqual:
            if case .null = operand {
                self = .empty
            } else if ValueOrder.typeClass(of: operand) == .nan {
                self = ValueRanges(.isNotNaN)
            } else {
                self = ValueRanges(.isNotNull).subtracting(Self.equal(operand))
            }
        case .in:
            self = .empty
            for value in Self.elements(operand) { formUnion(Self.equal(value)) }
        case .notIn:
            self = ValueRanges(.isNotNull)
            for value in Self.elements(operand) {
                switch ValueOrder.typeClass(of: value) {
                case .null: self = .empty
                case .nan: self = subtracting(.class(IndexValue.Tag.nan))
                default: self = subtracting(Self.equal(value))
                }
            }
        case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
            self = Self.relation(filter, operand)
        case .arrayContains, .arrayContainsAny:
            self = .class(IndexValue.Tag.array)
            needsCheck = true
        }
    }

    private static func elements(_ operand: Value) -> [Value] {
        if case .array(let elements) = operand { elements } else { [] }
    }

    private static func `class`(_ tag: UInt8) -> ValueRanges {
        ValueRanges(ranges: [KeyRange(lower: [tag], upper: [tag + 1])])
    }

    private static func equal(_ operand: Value) -> ValueRanges {
        switch ValueOrder.typeClass(of: operand) {
        case .null, .nan: return .empty
        default:
            let (bytes, isCut) = cut(IndexValue.encode(operand))
            var result = ValueRanges(ranges: [KeyRange(prefix: bytes)])
            result.needsCheck = isCut
            return result
        }
    }

    private static func relation(_ filter: Filter.Operator, _ operand: Value) -> ValueRanges {
        switch ValueOrder.typeClass(of: operand) {
        case .null, .nan: return .empty
        default: break
        }
        let (bytes, isCut) = cut(IndexValue.encode(operand))
        let all = KeyRange(lower: [bytes[0]], upper: [bytes[0] + 1])
        let at = bytes
        let after = KeyRange.successor(ofPrefix: bytes)
        var result: ValueRanges
        switch filter {
        case .lessThan: result = ValueRanges(ranges: [KeyRange(lower: all.lower, upper: isCut ? after : at)])
        case .lessThanOrEqual: result = ValueRanges(ranges: [KeyRange(lower: all.lower, upper: after)])
        case .greaterThan: result = ValueRanges(ranges: [KeyRange(lower: isCut ? at : after ?? at, upper: all.upper)])
        default: result = ValueRanges(ranges: [KeyRange(lower: at, upper: all.upper)])
        }
        result.needsCheck = isCut
        return result
    }

    private static func cut(_ bytes: [UInt8]) -> (bytes: [UInt8], isCut: Bool) {
        let limit = IndexValue.sizeMax(tag: bytes[0])
        return bytes.count > limit ? (Array(bytes.prefix(limit)), true) : (bytes, false)
    }

    // MARK: Set operations

    func intersection(_ other: ValueRanges) -> ValueRanges {
        var intersection = ValueRanges(ranges: other.ranges.flatMap { Self.intersection(ranges, $0) })
        intersection.ranges.sort { UTF8Order.compare($0.lower, $1.lower) < 0 }
        intersection.needsCheck = needsCheck || other.needsCheck
        return intersection
    }

    /// The part of several ranges that lies within one.
    static func intersection(_ ranges: [KeyRange], _ bound: KeyRange) -> [KeyRange] {
        ranges.compactMap { range in
            let lower = UTF8Order.compare(range.lower, bound.lower) >= 0 ? range.lower : bound.lower
            let within = KeyRange(lower: lower, upper: lesser(range.upper, bound.upper))
            return within.isEmpty ? nil : within
        }
    }

    /// Removes the values of `other`; none where `other` isn't exact.
    func subtracting(_ other: ValueRanges) -> ValueRanges {
        var result = self
        if other.needsCheck {
            result.needsCheck = true
            return result
        }
        for hole in other.ranges {
            result.ranges = result.ranges.flatMap { range -> [KeyRange] in
                [
                    KeyRange(lower: range.lower, upper: Self.lesser(range.upper, hole.lower)),
                    hole.upper.map { upper in
                        KeyRange(
                            lower: UTF8Order.compare(range.lower, upper) >= 0 ? range.lower : upper, upper: range.upper)
                    } ?? KeyRange(lower: [0xFF], upper: [0xFF]),
                ].filter { !$0.isEmpty }
            }
        }
        return result
    }

    mutating func formUnion(_ other: ValueRanges) {
        var merged: [KeyRange] = []
        for range in (ranges + other.ranges).sorted(by: { UTF8Order.compare($0.lower, $1.lower) < 0 }) {
            if let last = merged.last, last.upper == nil || UTF8Order.compare(range.lower, last.upper!) <= 0 {
                merged[merged.count - 1].upper = Self.greater(last.upper, range.upper)
            } else {
                merged.append(range)
            }
        }
        ranges = merged
        needsCheck = needsCheck || other.needsCheck
    }

    func contains(_ encoded: [UInt8]) -> Bool {
        ranges.contains { $0.contains(encoded) }
    }

    static func lesser(_ lhs: [UInt8]?, _ rhs: [UInt8]?) -> [UInt8]? {
        guard let lhs else { return rhs }
        guard let rhs else { return lhs }
        return UTF8Order.compare(lhs, rhs) <= 0 ? lhs : rhs
    }

    static func greater(_ lhs: [UInt8]?, _ rhs: [UInt8]?) -> [UInt8]? {
        guard let lhs, let rhs else { return nil }
        return UTF8Order.compare(lhs, rhs) >= 0 ? lhs : rhs
    }
}
