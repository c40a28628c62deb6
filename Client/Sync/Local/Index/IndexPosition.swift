import HearthModel

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
