import HearthModel

/// Values that represent those of all documents in a query's result, of which only the filtered part is known.
///
/// An unknown value must never evaluate to false, because its negation would allow the query. Every result that depends
/// on it is an error: neither a condition nor its negation holds.
extension RuleValue {
    /// Whether a part of the value is unknown.
    var isOpen: Bool {
        switch self {
        case .constraint: true
        case .map(.built(let map)): map.isPartial || map.entries.contains { $0.value.isOpen }
        case .list(.built(let values)): values.contains { $0.isOpen }
        case .set(let set): set.elements.contains { $0.isOpen }
        default: false
        }
    }
}

extension Evaluation {
    /// Whether this evaluation is for a query whose documents may have more fields than it filters.
    var isOfPartialData: Bool { branch?.isPartial ?? false }

    /// Whether all possible values of both sides are equal (true), or none (false); nil when that is unknown.
    func decideEqual(_ left: RuleValue, _ right: RuleValue) -> Bool? {
        switch (left, right) {
        case (.constraint, .constraint): return nil
        case (.constraint(let constraint), let value), (let value, .constraint(let constraint)):
            return value.isOpen ? nil : constraint.decide(.equal, value, self)
        case (.map(let first), .map(let second)): return decideEqual(first, second)
        case (.list(let first), .list(let second)):
            if first.count != second.count { return false }
            return decideAll((0..<first.count).map { (first[$0], second[$0]) })
        case (.set, .set) where left.isOpen || right.isOpen: return nil
        default: return equal(left, right)
        }
    }

    private func decideEqual(_ left: RuleMap, _ right: RuleMap) -> Bool? {
        let first = entries(of: left)
        let second = entries(of: right)
        let others = BuiltMap(second)
        var pairs: [(RuleValue, RuleValue)] = []
        for entry in first {
            if let other = others[entry.name] {
                pairs.append((entry.value, other))
            } else if !right.isPartial {
                return false
            }
        }
        if !left.isPartial, pairs.count < second.count { return false }
        let known = decideAll(pairs)
        return known == true && (left.isPartial || right.isPartial) ? nil : known
    }

    /// False when one pair differs, nil when one pair is undecided.
    private func decideAll(_ pairs: [(RuleValue, RuleValue)]) -> Bool? {
        guard work(pairs.count) else { return nil }
        var isKnown = true
        for (left, right) in pairs {
            switch decideEqual(left, right) {
            case false?: return false
            case nil: isKnown = false
            case true?: break
            }
        }
        return isKnown ? true : nil
    }
}
