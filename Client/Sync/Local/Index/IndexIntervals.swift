import HearthModel
import HearthDocuments

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
