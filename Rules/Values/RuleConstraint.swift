import HearthModel
import HearthTree

/// A query's constraint on a field: every document in the result has a value in this range, none of the exclusions,
/// and, if it is a list, these elements.
final class RuleConstraint {
    struct Bound {
        var value: RuleValue
        var isInclusive: Bool
    }

    var lower: Bound?
    var upper: Bound?
    var excluded: [RuleValue] = []
    var contained: [RuleValue] = []

    /// Whether the comparison holds for every value (true), for none (false), or for some (nil).
    func decide(_ comparison: BinaryOperator, _ value: RuleValue, _ evaluation: Evaluation) -> Bool? {
        if evaluation.isOfPartialData, !Self.isOrderedAsFiltered(value) { return nil }
        switch comparison {
        case .equal: return isEqual(value, evaluation)
        case .notEqual: return isEqual(value, evaluation).map { !$0 }
        case .less: return lies(below: value, orEqual: false)
        case .lessOrEqual: return lies(below: value, orEqual: true)
        case .greater: return lies(below: value, orEqual: true).map { !$0 }
        case .greaterOrEqual: return lies(below: value, orEqual: false).map { !$0 }
        default: return nil
        }
    }

    /// Whether rules and filters order a value in the same way relative to all others.
    ///
    /// Rules compare strings by UTF-16 code units and filters by bytes of UTF-8; the orders differ between characters
    /// whose first bytes are EE and above. Rules do not order NaN, and a filter sorts it among the numbers.
    private static func isOrderedAsFiltered(_ value: RuleValue) -> Bool {
        switch value {
        case .string(let string): !string.utf8.contains { $0 >= 0xEE }
        case .float(let number): !number.isNaN
        default: true
        }
    }

    private func isEqual(_ value: RuleValue, _ evaluation: Evaluation) -> Bool? {
        if excluded.contains(where: { evaluation.equal($0, value) }) { return false }
        // A value that passes any of these filters is not null.
        if case .null = value { return false }
        if let lower {
            guard let order = RuleOrder.compare(lower.value, value) else { return nil }
            if order > 0 || (order == 0 && !lower.isInclusive) { return false }
        }
        if let upper {
            guard let order = RuleOrder.compare(upper.value, value) else { return nil }
            if order < 0 || (order == 0 && !upper.isInclusive) { return false }
        }
        if let lower, let upper, RuleOrder.compare(lower.value, value) == 0, RuleOrder.compare(upper.value, value) == 0
        {
            return true
        }
        return nil
    }

    /// Whether all values are below (or equal to) the given one, or none is.
    private func lies(below value: RuleValue, orEqual: Bool) -> Bool? {
        if let upper, let order = RuleOrder.compare(upper.value, value) {
            if order < 0 || (order == 0 && (orEqual || !upper.isInclusive)) { return true }
        }
        if let lower, let order = RuleOrder.compare(lower.value, value) {
            if order > 0 || (order == 0 && (!orEqual || !lower.isInclusive)) { return false }
        }
        return nil
    }

    // MARK: Building

    /// Records that the field is above a value.
    func raise(_ value: RuleValue, isInclusive: Bool) {
        if let lower, let order = RuleOrder.compare(lower.value, value), order > 0 || (order == 0 && !lower.isInclusive)
        {
            return
        }
        lower = Bound(value: value, isInclusive: isInclusive)
    }

    /// Records that the field is below a value.
    func lessen(_ value: RuleValue, isInclusive: Bool) {
        if let upper, let order = RuleOrder.compare(upper.value, value), order < 0 || (order == 0 && !upper.isInclusive)
        {
            return
        }
        upper = Bound(value: value, isInclusive: isInclusive)
    }
}

/// The order of `<`, `<=`, `>` and `>=`.
enum RuleOrder {
    /// Negative, zero or positive; nil when rules do not order the two. NaN has no order: the callers of `compare`
    /// handle it.
    static func compare(_ lhs: RuleValue, _ rhs: RuleValue) -> Int? {
        switch (lhs, rhs) {
        case (.int(let left), .int(let right)): sign(left, right)
        case (.int(let left), .float(let right)): sign(Double(left), right)
        case (.float(let left), .int(let right)): sign(left, Double(right))
        case (.float(let left), .float(let right)): sign(left, right)
        case (.string(let left), .string(let right)): UTF16Order.compare(left, right)
        case (.bytes(let left), .bytes(let right)): UTF8Order.compare(left, right)
        case (.timestamp(let left), .timestamp(let right)), (.duration(let left), .duration(let right)):
            sign(left, right)
        default: nil
        }
    }

    private static func sign<T: Comparable>(_ lhs: T, _ rhs: T) -> Int { lhs < rhs ? -1 : lhs == rhs ? 0 : 1 }
}
