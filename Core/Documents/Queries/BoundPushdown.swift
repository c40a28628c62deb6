import HearthEngine
import HearthModel

/// Bounds of order keys as bounds of the suffixes that a branch scans, so that a cursor deep in an index costs no walk
/// to its position.
extension Planner {
    /// The range of suffixes within the query's bounds, ascending, and whether nothing in it is out of bounds.
    /// - Parameters:
    ///   - parts: the known parts of order keys, component by component.
    ///   - namePrefix: the part of order keys before the names of suffixes.
    ///   - reverse: whether order keys hold the complement of suffixes.
    func suffixBounds(
        _ parts: [QueryPlan.OrderPart], namePrefix: [UInt8], reverse: Bool
    ) -> (range: KeyRange, isExact: Bool) {
        guard query.hasBounds else { return (KeyRange(lower: [], upper: [0xFF]), true) }
        let lower = suffixBound(query.bounds.lower, parts, namePrefix: namePrefix, isUpper: false)
        let upper = query.bounds.upper.map { suffixBound($0, parts, namePrefix: namePrefix, isUpper: true) }
        guard let first = lower.bytes else { return (KeyRange(lower: [0xFF], upper: [0xFF]), true) }
        let range = Self.ascending(KeyRange(lower: first, upper: upper?.bytes), descending: reverse)
        return (range, lower.isExact && upper?.isExact ?? true)
    }

    /// One bound, still in the direction of order keys. Where it can't be exact, it is too wide.
    /// - Returns: nil for a bound after everything.
    private func suffixBound(
        _ bound: [UInt8], _ parts: [QueryPlan.OrderPart], namePrefix: [UInt8], isUpper: Bool
    ) -> (bytes: [UInt8]?, isExact: Bool) {
        var bytes: [UInt8] = []
        var position = 0
        for (part, order) in zip(parts, query.orders) {
            let rest = Array(bound[position...])
            if rest.isEmpty { return (bytes, true) }
            switch part {
            case .constant(let constant):
                if !rest.starts(with: constant) {
                    // All documents with the components so far are on one side of the bound.
                    let isBefore = UTF8Order.compare(rest, constant) < 0
                    return (isBefore ? bytes : KeyRange.successor(ofPrefix: bytes), true)
                }
                position += constant.count
            case .scanned:
                // A bound that is not a whole value is a position after some value: it is its own bound.
                guard let end = IndexValue.end(of: bound, from: position, complemented: order.descending) else {
                    return (bytes + rest, true)
                }
                bytes += bound[position..<end.end]
                if end.isCut { return (isUpper ? KeyRange.successor(ofPrefix: bytes) : bytes, false) }
                position = end.end
            case .name:
                return (bytes + Self.strip(rest, namePrefix, complemented: order.descending), true)
            }
        }
        if position == bound.count { return (bytes, true) }
        return (isUpper ? KeyRange.successor(ofPrefix: bytes) : bytes, false)
    }

    /// A position among names relative to the prefix.
    static func strip(_ bound: [UInt8], _ prefix: [UInt8], complemented: Bool = false) -> [UInt8] {
        if bound.isEmpty || prefix.isEmpty { return bound }
        let stripped = NormalizedQuery.relative(complemented ? bound.map(~) : bound, to: prefix)
        return complemented ? stripped.map(~) : stripped
    }

    /// Bounds of complemented bytes as bounds of the bytes themselves, or the other way round.
    static func ascending(_ bounds: KeyRange, descending: Bool) -> KeyRange {
        let end: [UInt8] = [0xFF]
        guard descending else { return KeyRange(lower: bounds.lower, upper: bounds.upper ?? end) }
        func mirrored(_ bound: [UInt8]) -> [UInt8]? { KeyRange.successor(ofPrefix: bound.map { ~$0 }) }
        // An empty upper bound excludes everything, an empty lower one nothing.
        let lower = bounds.upper.map { $0.isEmpty ? end : mirrored($0) ?? end } ?? []
        let upper = bounds.lower.isEmpty ? end : mirrored(bounds.lower) ?? end
        return KeyRange(lower: lower, upper: upper)
    }
}
