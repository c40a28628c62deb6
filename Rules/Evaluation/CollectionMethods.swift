import HearthModel

/// Methods of lists, sets, maps and map differences.
extension MethodCall {
    /// Up to this number of comparisons, comparing all pairs is faster than hashing.
    private static let pairsMax = 64

    // MARK: Lists

    func list(_ list: RuleList) -> RuleValue? {
        switch method {
        case .size: return .int(Int64(list.count))
        case .toSet: return evaluation.set(list.elements)
        case .join: return join(list)
        case .hasAll, .hasAny, .hasOnly, .concat, .removeAll:
            guard case .list(let other) = first else { return unsupported() }
            return combine(list, other)
        default: return nil
        }
    }

    private func combine(_ list: RuleList, _ other: RuleList) -> RuleValue {
        switch method {
        case .concat:
            if list.count + other.count > RulesLimits.elementsMax { return evaluation.abort() }
            guard evaluation.work(list.count + other.count) else { return evaluation.abort() }
            return evaluation.list(list.elements + other.elements)
        case .removeAll:
            let contains = membership(of: other, lookups: list.count)
            return evaluation.list(list.elements.filter { !contains($0) })
        case .hasAll: return .bool(other.elements.allSatisfy(membership(of: list, lookups: other.count)))
        case .hasAny: return .bool(other.elements.contains(where: membership(of: list, lookups: other.count)))
        default: return .bool(list.elements.allSatisfy(membership(of: other, lookups: list.count)))
        }
    }

    /// A membership test for a list: by hash when both sides are long.
    private func membership(of list: RuleList, lookups: Int) -> (RuleValue) -> Bool {
        if list.count.multipliedReportingOverflow(by: lookups).partialValue <= Self.pairsMax {
            return { [evaluation] in Operators.list(list, contains: $0, evaluation) }
        }
        guard evaluation.work(list.count + lookups) else { return { _ in false } }
        let set = RuleValueSet(list.elements, evaluation, isStrict: true)
        return { [evaluation] in set.contains($0, evaluation) }
    }

    private func join(_ list: RuleList) -> RuleValue {
        guard case .string(let separator) = first else { return unsupported() }
        var string = ""
        for index in 0..<list.count {
            let element = list[index]
            guard let part = Conversion.string(of: element) else { return Signatures.unsupported("string", [element]) }
            if index > 0 { string += separator }
            string += part
            if string.utf8.count > RulesLimits.stringSizeBytesMax { return evaluation.abort() }
        }
        return .string(string)
    }

    // MARK: Sets

    func set(_ set: RuleValueSet) -> RuleValue? {
        switch method {
        case .size: return .int(Int64(set.count))
        case .difference, .intersection, .union:
            guard case .set(let other) = first else { return unsupported() }
            switch method {
            case .difference: return evaluation.set(set.elements.filter { !other.contains($0, evaluation) })
            case .intersection: return evaluation.set(set.elements.filter { other.contains($0, evaluation) })
            default:
                if set.count + other.count > RulesLimits.elementsMax { return evaluation.abort() }
                return evaluation.set(set.elements + other.elements)
            }
        case .hasAll, .hasAny, .hasOnly:
            let elements: [RuleValue]
            switch first {
            case .list(let list): elements = list.elements
            case .set(let other): elements = other.elements
            default: return unsupported()
            }
            switch method {
            case .hasAll: return .bool(elements.allSatisfy { set.contains($0, evaluation) })
            case .hasAny: return .bool(elements.contains { set.contains($0, evaluation) })
            default:
                let others = RuleValueSet(elements, evaluation)
                return .bool(set.elements.allSatisfy { others.contains($0, evaluation) })
            }
        default: return nil
        }
    }

    // MARK: Maps

    func map(_ map: RuleMap) -> RuleValue? {
        switch method {
        case .size: return .int(Int64(evaluation.count(of: map)))
        case .keys:
            if case .stored(let map) = map { return .list(.built(map.fields.map { .string($0.name) })) }
            return .list(.built(evaluation.entries(of: map).map { .string($0.name) }))
        case .values: return .list(.built(evaluation.entries(of: map).map(\.value)))
        case .get: return get(map)
        case .diff:
            guard case .map(let old) = first else { return unsupported() }
            return .mapDiff(difference(map, old))
        default: return nil
        }
    }

    /// The member at a name or at a list of nested names; the default when one of them is missing.
    private func get(_ map: RuleMap) -> RuleValue {
        switch first {
        case .string(let name):
            return evaluation.member(named: name, of: map) ?? (map.isPartial ? .failure(.unprovable) : second)
        case .list(let names):
            var value = RuleValue.map(map)
            for index in 0..<names.count {
                guard case .string(let name) = names[index] else {
                    return .failure(.type(received: names[index].typeName, expected: "string"))
                }
                if case .constraint = value, evaluation.isOfPartialData { return .failure(.unprovable) }
                guard case .map(let inner) = value else { return second }
                guard let member = evaluation.member(named: name, of: inner) else {
                    return inner.isPartial ? .failure(.unprovable) : second
                }
                value = member
            }
            return value
        default: return unsupported()
        }
    }

    private func difference(_ new: RuleMap, _ old: RuleMap) -> RuleMapDiff {
        let left = evaluation.entries(of: new)
        let right = evaluation.entries(of: old)
        var (added, removed, changed, unchanged): ([String], [String], [String], [String]) = ([], [], [], [])
        var (i, j) = (0, 0)
        while i < left.count || j < right.count {
            let order =
                i == left.count ? 1 : j == right.count ? -1 : UTF8Order.compare(left[i].name, right[j].name)
            if order < 0 {
                added.append(left[i].name)
                i += 1
            } else if order > 0 {
                removed.append(right[j].name)
                j += 1
            } else {
                if evaluation.equivalent(left[i].value, right[j].value) {
                    unchanged.append(left[i].name)
                } else {
                    changed.append(left[i].name)
                }
                i += 1
                j += 1
            }
        }
        return RuleMapDiff(added: added, removed: removed, changed: changed, unchanged: unchanged)
    }

    func mapDiff(_ diff: RuleMapDiff) -> RuleValue? {
        let names: [String]
        switch method {
        case .addedKeys: names = diff.added
        case .removedKeys: names = diff.removed
        case .changedKeys: names = diff.changed
        case .unchangedKeys: names = diff.unchanged
        case .affectedKeys: names = diff.added + diff.removed + diff.changed
        default: return nil
        }
        return .set(RuleValueSet(strings: names, evaluation))
    }
}
