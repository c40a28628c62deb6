import HearthModel

/// A map: stored, built by rules, or one of the objects of a request. The objects are represented by their kind, and
/// their members are created when a rule reads them.
enum RuleMap {
    case stored(MapValue)
    case large(LargeMap)
    case built(BuiltMap)
    /// `request`
    case request
    /// `request.auth`
    case auth
    /// `request.query`
    case query
    /// `resource`, `request.resource`, and the results of `get`.
    case document(RulesDocument)

    var isPartial: Bool {
        if case .built(let map) = self { map.isPartial } else { false }
    }
}

/// A map that rules have built: sorted by the bytes of the names, each once.
final class BuiltMap {
    let entries: [(name: String, value: RuleValue)]
    /// Whether there may be unknown members: of a document in a query's result only the filtered fields are known.
    let isPartial: Bool

    /// - Parameter unsorted: of two entries with one name the later one wins.
    init(_ unsorted: [(name: String, value: RuleValue)], isPartial: Bool = false) {
        self.isPartial = isPartial
        let isSorted = zip(unsorted, unsorted.dropFirst()).allSatisfy { UTF8Order.compare($0.name, $1.name) < 0 }
        entries = isSorted ? unsorted : Self.sorted(unsorted)
    }

    private static func sorted(_ unsorted: [(name: String, value: RuleValue)]) -> [(name: String, value: RuleValue)] {
        // Positions keep the sort stable, so that the last of equal names wins.
        let order = unsorted.indices.sorted { left, right in
            let names = UTF8Order.compare(unsorted[left].name, unsorted[right].name)
            return names != 0 ? names < 0 : left < right
        }
        var sorted: [(name: String, value: RuleValue)] = []
        sorted.reserveCapacity(unsorted.count)
        for index in order {
            if let last = sorted.last, UTF8Order.equal(last.name, unsorted[index].name) { sorted.removeLast() }
            sorted.append(unsorted[index])
        }
        return sorted
    }

    subscript(name: String) -> RuleValue? {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            let order = UTF8Order.compare(entries[middle].name, name)
            if order == 0 { return entries[middle].value }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }
}

/// The names of the members of a request's objects. They are resolved when a ruleset is compiled, so that the
/// evaluation compares no strings.
enum KnownMember: String, Sendable {
    case auth, uid, token, method, path, time, query, resource, data, id, limit, offset, orderBy
    case documentName = "__name__"
}
