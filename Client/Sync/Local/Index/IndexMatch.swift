import HearthModel

extension FieldIndex {
    var arraySegment: Segment? { segments.first { $0.kind == .contains } }
    var directionalSegments: [Segment] { segments.filter { $0.kind != .contains } }
    /// Keys of equal entries have the direction of the last segment.
    var isKeyDescending: Bool { directionalSegments.last?.kind == .descending }
}

/// An index that serves a sub-target, and the segments that it uses.
///
/// The directional segments are, in order: segments with equalities, whose values are fixed; at most one segment with
/// an inequality; and segments for the following orderings. The rest is decided by matching the documents.
struct IndexMatch {
    let index: FieldIndex
    let subTarget: IndexSubTarget
    /// The number of leading directional segments that equalities fix.
    private let fixedCount: Int
    /// The orderings that matter: those before the name, without the fields that equalities fix.
    private let freeOrders: [Query.Order]

    /// nil when the index doesn't serve the sub-target.
    init?(_ index: FieldIndex, _ subTarget: IndexSubTarget) {
        if subTarget.hasSeveralInequalityFields { return nil }
        if index.segments.count(where: { $0.kind == .contains }) > 1 { return nil }
        if let array = index.arraySegment, !subTarget.arrays.contains(where: { $0.path == array.path }) { return nil }
        let segments = index.directionalSegments
        let fixedCount = segments.prefix { subTarget.equality(on: $0.path) != nil }.count
        let fixed = Set(segments.prefix(fixedCount).map(\.path))
        let freeOrders = subTarget.orders.prefix { !$0.field.isDocumentName }
            .filter { subTarget.equality(on: $0.field) == nil }
        let free = segments.dropFirst(fixedCount)
        if let first = free.first, let inequality = subTarget.inequalities.first?.path, !fixed.contains(inequality),
            first.path != inequality
        {
            return nil
        }
        guard free.count <= freeOrders.count,
            zip(free, freeOrders).allSatisfy({ $0.path == $1.field && ($0.kind == .descending) == $1.descending })
        else { return nil }
        self.index = index
        self.subTarget = subTarget
        self.fixedCount = fixedCount
        self.freeOrders = freeOrders
    }

    /// Whether the index has the target's order. A query with a limit then reads only as many entries as its limit.
    var hasFullOrder: Bool {
        !subTarget.hasNameCondition && index.segments.count >= subTarget.fullSegmentCount
            && index.isKeyDescending == subTarget.isNameDescending
    }

    var coverage: IndexCoverage { index.segments.count >= subTarget.fullSegmentCount ? .full : .partial }

    // MARK: Ranges

    package struct Range {
        var lower: [UInt8]
        /// Exclusive; nil: no upper bound.
        var upper: [UInt8]?
    }

    /// The ranges of the index's entries that contain all documents of the sub-target.
    var ranges: [Range] {
        var prefixes = arrayPrefixes
        let segments = index.directionalSegments
        for segment in segments.prefix(fixedCount) {
            guard let condition = subTarget.equality(on: segment.path) else { continue }
            let bytes = ClientIndexValue(condition.operand).bytes
            let part = segment.kind == .descending ? ClientIndexValue.inverted(bytes) : bytes
            prefixes = prefixes.map { $0 + part }
        }
        var intervals = [IndexIntervals.Interval(lower: .lowest, upper: .highest)]
        if fixedCount < segments.count {
            let segment = segments[fixedCount]
            var allowed = IndexIntervals()
            for condition in subTarget.inequalities where condition.path == segment.path {
                allowed.restrict(condition.op, condition.operand)
            }
            intervals = allowed.ordered(descending: segment.kind == .descending)
        }
        let start = subTarget.start.map { position(of: $0, isAfterExact: !$0.isInclusive, isAfterInexact: false) }
        let end = subTarget.end.map { position(of: $0, isAfterExact: $0.isInclusive, isAfterInexact: true) }
        return prefixes.flatMap { prefix in
            intervals.compactMap { interval in
                let lower = start.map { IndexPosition.isBelow(interval.lower, $0) ? $0 : interval.lower }
                let upper = end.map { IndexPosition.isBelow($0, interval.upper) ? $0 : interval.upper }
                return Self.range(lower ?? interval.lower, upper ?? interval.upper, below: prefix)
            }
        }
    }

    private static func range(_ lower: IndexPosition, _ upper: IndexPosition, below prefix: [UInt8]) -> Range? {
        guard IndexPosition.isBelow(lower, upper), let first = lower.key(below: prefix) else { return nil }
        return Range(lower: first, upper: upper.key(below: prefix))
    }

    private var arrayPrefixes: [[UInt8]] {
        guard let path = index.arraySegment?.path else { return [[]] }
        let conditions = subTarget.arrays.filter { $0.path == path }
        let condition = conditions.first { $0.op == .arrayContains } ?? conditions[0]
        var elements = [condition.operand]
        if condition.op == .arrayContainsAny, case .array(let list) = condition.operand { elements = list }
        return Array(Set(IndexSubTarget.findable(elements).map { ClientIndexValue($0).bytes }))
    }

    /// The position of a cursor among the entries after the fixed segments. A cursor with values that the index does
    /// not cover is treated as the position of all entries with the same prefix.
    private func position(
        of bound: ClientQuery.Bound, isAfterExact: Bool, isAfterInexact: Bool
    ) -> IndexPosition {
        var bytes: [UInt8] = []
        var segments = index.directionalSegments.dropFirst(fixedCount)
        for (value, order) in zip(bound.values, subTarget.orders) {
            if order.field.isDocumentName {
                guard segments.isEmpty, order.descending == index.isKeyDescending,
                    let key = ResourcePath(reference: value)
                else { return IndexPosition(bytes: bytes, isAfter: isAfterInexact) }
                let part = CacheKey.encode(key)
                bytes += order.descending ? ClientIndexValue.inverted(part) : part
                return IndexPosition(bytes: bytes, isAfter: isAfterExact)
            }
            if !freeOrders.contains(where: { $0.field == order.field }) {
                // The segment is fixed: the cursor continues after it only when its value is the fixed one.
                guard let fixed = subTarget.equality(on: order.field), ClientValueOrder.equivalent(fixed.operand, value)
                else { return IndexPosition(bytes: bytes, isAfter: isAfterInexact) }
                continue
            }
            guard let segment = segments.popFirst(), segment.path == order.field else {
                return IndexPosition(bytes: bytes, isAfter: isAfterInexact)
            }
            let encoded = ClientIndexValue(value)
            bytes += segment.kind == .descending ? ClientIndexValue.inverted(encoded.bytes) : encoded.bytes
            if encoded.isCut { return IndexPosition(bytes: bytes, isAfter: isAfterInexact) }
        }
        return IndexPosition(bytes: bytes, isAfter: isAfterExact)
    }
}
