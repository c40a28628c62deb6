import HearthEngine
import HearthModel

/// Chooses index scans for a query.
///
/// A conjunction whose order is by name alone joins the ranges of its equality filters (each is ordered by name). With
/// an inequality or an order on one field that field's own index provides the order; with additional equalities a
/// composite index, or several joined, if they are defined. Where the service would fail for lack of an index
/// (`RequiredIndexes` decides that), the cheapest existing index is scanned, and the rest is filtered and sorted.
struct Planner {
    let query: NormalizedQuery
    let catalog: IndexCatalog
    let snapshot: any Snapshot

    func plan() throws(Status) -> QueryPlan {
        switch query.query.scope {
        case .collection(let id): return try planCollection(id)
        case .collectionGroup(let id): return try planGroup(id)
        case .anyCollection, .allDescendants: return try planKindless()
        }
    }

    // MARK: Scopes

    private func planCollection(_ id: String) throws(Status) -> QueryPlan {
        var branches: [QueryPlan.Branch] = []
        let collection = ScannedCollection(path: query.parentPath.appending(id), id: id, namePrefix: [])
        for conjunction in query.disjunction {
            guard let constraints = Constraints(conjunction, query: query) else { continue }
            branches.append(try plan(constraints, in: collection))
        }
        return QueryPlan(branches: Self.joined(branches), isDisjoint: query.disjunction.count == 1)
    }

    /// Alternatives that scan the same entries in the same order, each with a filter of its own, scan them once: a
    /// document passes when one of the filters passes.
    private static func joined(_ branches: [QueryPlan.Branch]) -> [QueryPlan.Branch] {
        var joined: [QueryPlan.Branch] = []
        for branch in branches {
            if let position = joined.firstIndex(where: { $0.scansTheSame(as: branch) }) {
                joined[position].alternatives.append(branch.residual)
            } else {
                joined.append(branch)
            }
        }
        for position in joined.indices where !joined[position].alternatives.isEmpty {
            joined[position].alternatives.append(joined[position].residual)
            joined[position].residual = []
        }
        return joined
    }

    /// A collection group consists of its root collection, whose documents are in one range, and its nested
    /// collections, which an index of names finds.
    private func planGroup(_ id: String) throws(Status) -> QueryPlan {
        var branches: [QueryPlan.Branch] = []
        let isRoot = query.parentPath.isRoot
        for conjunction in query.disjunction {
            guard let constraints = Constraints(conjunction, query: query) else { continue }
            if let branch = definedBranch(
                constraints, constraints.sortFields(query), in: rootOfGroups(id), scope: .collectionGroup)
            {
                branches.append(branch)
                continue
            }
            if isRoot {
                let segment = DocumentKey.encodeSegments(ResourcePath([id]))
                let collection = ScannedCollection(path: ResourcePath([id]), id: id, namePrefix: segment)
                branches.append(try plan(constraints, in: collection))
            }
            branches.append(nestedGroupBranch(constraints, id))
        }
        return QueryPlan(branches: branches, isDisjoint: query.disjunction.count == 1)
    }

    private func rootOfGroups(_ id: String) -> ScannedCollection {
        ScannedCollection(path: ResourcePath(), id: id, namePrefix: [])
    }

    private func nestedGroupBranch(_ constraints: Constraints, _ id: String) -> QueryPlan.Branch {
        let orderedByName = constraints.sortFields(query).isEmpty
        let reverse = orderedByName && query.nameDescending
        let parts = orderedByName ? constraints.parts(query) : []
        let bounds = suffixBounds(parts, namePrefix: [], reverse: reverse)
        // The parent itself may belong to the group, but it is not below itself: documents below it have a further SEG.
        let below = KeyRange(lower: [IndexValue.Tag.numericSegment], upper: [0xFF])
        let source = QueryPlan.Source(
            keyspace: .entries, prefix: IndexKey.groupNamePrefix(id) + query.namePrefix,
            ranges: ValueRanges.intersection(nameRanges(constraints, within: bounds.range, namePrefix: []), below),
            properties: "(__name__ ASC)", isGroupScope: true)
        return QueryPlan.Branch(
            sources: [source], reverse: reverse, complemented: [], parts: parts, namePrefix: [],
            keyPrefix: query.namePrefix,
            nameIsPath: true, residual: constraints.residual(covered: []),
            isExact: constraints.isOnlyByName && orderedByName && bounds.isExact)
    }

    /// Every document below a path, or in the collections directly below it: by name alone.
    private func planKindless() throws(Status) -> QueryPlan {
        var branches: [QueryPlan.Branch] = []
        for conjunction in query.disjunction {
            guard let constraints = Constraints(conjunction, query: query) else { continue }
            // Document keys are ordered by collections, names by paths: all are gathered and sorted.
            let source = QueryPlan.Source(
                keyspace: .documents, prefix: query.namePrefix, ranges: [KeyRange(lower: [], upper: nil)],
                properties: "(__name__ ASC)", isGroupScope: query.query.scope == .allDescendants)
            branches.append(
                QueryPlan.Branch(
                    sources: [source], reverse: false, complemented: [], parts: [], namePrefix: [],
                    keyPrefix: query.namePrefix, nameIsPath: false, names: constraints.names, residual: [],
                    checksScope: true, isExact: false))
        }
        return QueryPlan(branches: branches, isDisjoint: query.disjunction.count == 1)
    }

    // MARK: One conjunction in one collection

    /// A collection that a branch scans.
    struct ScannedCollection {
        var path: ResourcePath
        var id: String
        /// The part before a document's own name in this query's order keys.
        var namePrefix: [UInt8]
        var prefix: [UInt8] { path.isRoot ? [] : DocumentKey.collectionPrefix(path) }
    }

    private func plan(_ constraints: Constraints, in collection: ScannedCollection) throws(Status) -> QueryPlan.Branch {
        let sortFields = constraints.sortFields(query)
        if sortFields.isEmpty { return planByName(constraints, in: collection) }
        if let branch = definedBranch(constraints, sortFields, in: collection, scope: .collection) { return branch }
        let hasEqualities = !equalitySources(constraints, in: collection).isEmpty
        let scan = fieldScan(constraints, sortFields, in: collection)
        if !hasEqualities, let scan { return scan }
        return try cheaper(constraints, sortFields, scan: scan, in: collection)
    }

    /// Equality ranges are ordered by name; several are joined. Without equalities: the collection itself.
    private func planByName(_ constraints: Constraints, in collection: ScannedCollection) -> QueryPlan.Branch {
        let parts = constraints.parts(query)
        let bounds = suffixBounds(parts, namePrefix: collection.namePrefix, reverse: query.nameDescending)
        let ranges = nameRanges(constraints, within: bounds.range, namePrefix: collection.namePrefix)
        var sources = equalitySources(constraints, in: collection)
        let residual = constraints.residual(covered: Set(sources.flatMap(\.covered)))
        for index in sources.indices { sources[index].source.ranges = ranges }
        if sources.isEmpty {
            let documents = QueryPlan.Source(
                keyspace: .documents, prefix: collection.prefix, ranges: ranges, properties: "(__name__ ASC)",
                isGroupScope: false)
            sources = [(documents, [])]
        }
        return QueryPlan.Branch(
            sources: sources.map(\.source), reverse: query.nameDescending, complemented: [], parts: parts,
            namePrefix: collection.namePrefix, keyPrefix: collection.prefix, nameIsPath: false, residual: residual,
            isExact: residual.isEmpty && bounds.isExact)
    }

    /// One source for each equality that has an index: by the index of the field, or of an array's elements.
    private func equalitySources(
        _ constraints: Constraints, in collection: ScannedCollection
    ) -> [(source: QueryPlan.Source, covered: [Int])] {
        var sources: [(source: QueryPlan.Source, covered: [Int])] = []
        for (path, ranges) in constraints.fields {
            guard let prefix = ranges.singlePrefix, constraints.isEquality(path),
                catalog.hasOrderIndex(path, in: collection.id)
            else { continue }
            let key = IndexKey.fieldPrefix(collectionPrefix: collection.prefix, path: path, contains: false) + prefix
            sources.append(
                (source(key, "(\(path) ASC, __name__ ASC)"), ranges.needsCheck ? [] : constraints.indices(of: path)))
        }
        for membership in constraints.memberships
        where catalog.hasContainsIndex(membership.path, in: collection.id) {
            var element: [UInt8] = []
            IndexValue.appendCut(membership.value, to: &element)
            let isCut = element.count >= IndexValue.sizeMax(tag: element[0])
            let key =
                IndexKey.fieldPrefix(collectionPrefix: collection.prefix, path: membership.path, contains: true)
                + element
            sources.append(
                (source(key, "(\(membership.path) CONTAINS, __name__ ASC)"), isCut ? [] : [membership.index]))
        }
        return sources
    }

    private func source(_ prefix: [UInt8], _ properties: String) -> QueryPlan.Source {
        QueryPlan.Source(
            keyspace: .entries, prefix: prefix, ranges: [KeyRange(lower: [], upper: nil)], properties: properties,
            isGroupScope: false)
    }

    /// The index of the first field of the order, when there is one: ordered by that field and then by name in the same
    /// direction.
    private func fieldScan(
        _ constraints: Constraints, _ sortFields: [Query.Order], in collection: ScannedCollection
    ) -> QueryPlan.Branch? {
        guard let first = sortFields.first, catalog.hasOrderIndex(first.field, in: collection.id) else {
            return nil
        }
        let ranges = constraints.ranges(first.field)
        let isOrdered = sortFields.count == 1 && query.nameDescending == first.descending
        let parts = isOrdered ? constraints.parts(query) : constraints.constantsBefore(first.field, query) + [.scanned]
        let bounds = suffixBounds(parts, namePrefix: collection.namePrefix, reverse: first.descending)
        let direction = first.descending ? "DESC" : "ASC"
        let source = QueryPlan.Source(
            keyspace: .entries,
            prefix: IndexKey.fieldPrefix(collectionPrefix: collection.prefix, path: first.field, contains: false),
            ranges: ValueRanges.intersection(ranges.ranges, bounds.range),
            properties: "(\(first.field) \(direction), __name__ \(direction))", isGroupScope: false)
        let residual = constraints.residual(covered: Set(ranges.needsCheck ? [] : constraints.indices(of: first.field)))
        return QueryPlan.Branch(
            sources: [source], reverse: first.descending, complemented: [false], parts: parts,
            namePrefix: collection.namePrefix, keyPrefix: collection.prefix, nameIsPath: false,
            names: constraints.names,
            residual: residual,
            isExact: sortFields.count == 1 && residual.isEmpty && constraints.names == nil && bounds.isExact)
    }

    /// For lack of a composite index: either the equalities are joined and the result is sorted, or the order's field
    /// is scanned and the equalities are checked on each document. A bounded count of both decides.
    private func cheaper(
        _ constraints: Constraints, _ sortFields: [Query.Order], scan: QueryPlan.Branch?,
        in collection: ScannedCollection
    ) throws(Status) -> QueryPlan.Branch {
        let probe = 1000
        let sources = equalitySources(constraints, in: collection)
        var smallest = Int.max
        for (source, _) in sources {
            smallest = min(smallest, try count(source, limit: probe))
        }
        if let scan {
            let scanned = try count(scan.sources[0], limit: probe)
            let wantsFew = query.query.limit != nil
            if scanned < smallest || (scanned == smallest && wantsFew) || sources.isEmpty { return scan }
        }
        var branch = planByName(constraints, in: collection)
        branch.reverse = false
        branch.parts = []
        branch.isExact = false
        let everything = KeyRange(lower: [], upper: [0xFF])
        for index in branch.sources.indices {
            branch.sources[index].ranges = nameRanges(
                constraints, within: everything, namePrefix: collection.namePrefix)
        }
        return branch
    }

    private func count(_ source: QueryPlan.Source, limit: Int) throws(Status) -> Int {
        var total = 0
        for range in source.ranges where total < limit {
            total += try snapshot.count(
                source.keyspace, Self.absolute(range, prefix: source.prefix), limit: limit - total)
        }
        return total
    }

    static func absolute(_ range: KeyRange, prefix: [UInt8]) -> KeyRange {
        KeyRange(
            lower: prefix + range.lower, upper: range.upper.map { prefix + $0 } ?? KeyRange.successor(ofPrefix: prefix))
    }

    /// The names that filters on `__name__` and the cursors allow.
    private func nameRanges(_ constraints: Constraints, within bounds: KeyRange, namePrefix: [UInt8]) -> [KeyRange] {
        guard let names = constraints.names else { return [bounds] }
        let own = names.ranges.map { range in
            KeyRange(
                lower: Self.strip(range.lower, namePrefix),
                upper: range.upper.map { Self.strip($0, namePrefix) } ?? [0xFF])
        }
        return ValueRanges.intersection(own, bounds)
    }
}
