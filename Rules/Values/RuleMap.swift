import HearthModel

/// A map: stored, put together by rules, or one of the objects that a request consists of. The objects are known by what
/// they are, and their members are made when a rule reads them.
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
    /// `resource`, `request.resource`, and what `get` returns.
    case document(RulesDocument)

    var isPartial: Bool {
        if case .built(let map) = self { map.isPartial } else { false }
    }
}

/// A map that rules put together: sorted by the bytes of the names, each once.
final class BuiltMap {
    let entries: [(name: String, value: RuleValue)]
    /// Whether there may be members of which nothing is known: of a document that a query finds only what it filters is.
    let isPartial: Bool

    /// - Parameter unsorted: of two entries with one name the later wins.
    init(_ unsorted: [(name: String, value: RuleValue)], isPartial: Bool = false) {
        self.isPartial = isPartial
        let isSorted = zip(unsorted, unsorted.dropFirst()).allSatisfy { UTF8Order.compare($0.name, $1.name) < 0 }
        entries = isSorted ? unsorted : Self.sorted(unsorted)
    }

    private static func sorted(_ unsorted: [(name: String, value: RuleValue)]) -> [(name: String, value: RuleValue)] {
        // Positions keep the sort stable, so that the last of equal names is known.
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

/// The names that the objects of a request have as members, known when a ruleset is compiled so that no text is compared
/// while it is evaluated.
enum KnownMember: String, Sendable {
    case auth, uid, token, method, path, time, query, resource, data, id, limit, offset, orderBy
    case documentName = "__name__"
}
