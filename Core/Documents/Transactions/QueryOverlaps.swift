import HearthEngine
import HearthModel

/// Finds, among many queries, those that may share a document with one query, without examining most of the others.
///
/// Each alternative of a query is filed under the values that it allows for one field. An alternative of another query
/// meets only those whose values of that field overlap its own; when it has no condition on that field, all of them.
///
/// It is guarded by its owner's lock.
final class QueryOverlaps<Element: QueryFootprinted> {
    private final class Alternative {
        let element: Element
        let constraints: Constraints

        init(_ element: Element, _ constraints: Constraints) {
            self.element = element
            self.constraints = constraints
        }
    }

    /// Up to this many overlaps of a value decide under which field an alternative is filed.
    private static var crowdMax: Int { 8 }

    private var fields: [FieldPath: IntervalIndex<Alternative>] = [:]
    /// Alternatives without a condition on a field's value.
    private var others: [ObjectIdentifier: Alternative] = [:]
    private var filed: [ObjectIdentifier: [(path: FieldPath?, alternative: Alternative)]] = [:]
    /// How many alternatives were examined so far, and nodes on the way to them.
    private(set) var visits = 0

    var isEmpty: Bool { filed.isEmpty }

    func insert(_ element: Element) {
        var filings: [(path: FieldPath?, alternative: Alternative)] = []
        for constraints in element.footprint.alternatives {
            let alternative = Alternative(element, constraints)
            let path = leastCrowded(constraints)
            filings.append((path, alternative))
            if let path {
                let range = QueryAnchors.hull(constraints.ranges(path))
                fields[path, default: IntervalIndex()].insert(alternative, range)
            } else {
                others[ObjectIdentifier(alternative)] = alternative
            }
        }
        filed[ObjectIdentifier(element)] = filings
    }

    /// The field whose values distinguish an alternative from most others.
    private func leastCrowded(_ constraints: Constraints) -> FieldPath? {
        guard constraints.fields.count > 1 else { return constraints.fields.first?.path }
        var best: (path: FieldPath, crowd: Int, isPoint: Bool)?
        for (path, ranges) in constraints.fields {
            var crowd = 0
            let visited = fields[path]?.visit(QueryAnchors.hull(ranges)) { _ in
                crowd += 1
                return crowd == Self.crowdMax
            }
            visits += visited ?? 0
            let isPoint = ranges.point != nil
            guard let known = best else {
                best = (path, crowd, isPoint)
                continue
            }
            if crowd < known.crowd || (crowd == known.crowd && isPoint && !known.isPoint) {
                best = (path, crowd, isPoint)
            }
        }
        return best?.path
    }

    func remove(_ element: Element) {
        for (path, alternative) in filed.removeValue(forKey: ObjectIdentifier(element)) ?? [] {
            if let path {
                fields[path]?.remove(alternative)
                if fields[path]?.count == 0 { fields[path] = nil }
            } else {
                others[ObjectIdentifier(alternative)] = nil
            }
        }
    }

    /// Calls `body` with those that may share a document with a query, some of them more than once, until it returns
    /// true.
    /// - Returns: whether it did.
    func visit(_ footprint: QueryFootprint, _ body: (Element) -> Bool) -> Bool {
        for constraints in footprint.alternatives {
            var isOver = false
            func examine(_ alternative: Alternative) -> Bool {
                visits += 1
                let element = alternative.element
                isOver =
                    element.footprint.locationsOverlap(footprint)
                    && !alternative.constraints.exclude(constraints) && body(element)
                return isOver
            }
            for (path, index) in fields {
                visits += index.visit(QueryAnchors.hull(constraints.ranges(path)), examine)
                if isOver { return true }
            }
            for alternative in others.values where examine(alternative) { return true }
        }
        return false
    }
}

/// An object with a footprint that does not change.
protocol QueryFootprinted: AnyObject {
    var footprint: QueryFootprint { get }
}
