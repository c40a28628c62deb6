import HearthEngine
import HearthModel

/// Planning with index definitions: composite indexes, and single-field indexes of collection group scope.
extension Planner {
    /// A definition that begins with some of the equalities and ends with the whole order.
    private struct Candidate {
        var definition: IndexDefinition
        /// Walks the definition backwards: all its directions are the opposite of the order's.
        var reverse: Bool
        var equalities: [FieldPath]
        var membership: Constraints.Membership?
        var coverage: Int { equalities.count + (membership == nil ? 0 : 1) }
    }

    /// One definition, or several joined, that have the order and together cover the equalities.
    ///
    /// In a collection, uncovered equalities are filtered afterwards; a collection group needs a full cover.
    func definedBranch(
        _ constraints: Constraints, _ sortFields: [Query.Order], in collection: ScannedCollection,
        scope: IndexDefinition.Scope
    ) -> QueryPlan.Branch? {
        // The names in a group's index start at the root; below a document they would have to be cut out of the middle
        // of its keys.
        if scope == .collectionGroup, !query.parentPath.isRoot { return nil }
        let candidates = candidates(constraints, sortFields, in: collection, scope: scope)
        guard let reverse = candidates.first?.reverse else { return nil }
        var chosen: [Candidate] = []
        var openFields = Set(constraints.fields.map(\.path).filter { constraints.isEquality($0) })
        var openMemberships = Set(constraints.memberships.map(\.index))
        for candidate in candidates where candidate.reverse == reverse {
            let gain =
                openFields.intersection(candidate.equalities).count
                + (candidate.membership.map { openMemberships.contains($0.index) ? 1 : 0 } ?? 0)
            guard gain > 0 || chosen.isEmpty else { continue }
            chosen.append(candidate)
            openFields.subtract(candidate.equalities)
            if let membership = candidate.membership { openMemberships.remove(membership.index) }
        }
        let isFull = openFields.isEmpty && openMemberships.isEmpty
        if scope == .collectionGroup, !isFull || constraints.isOnlyByName { return nil }
        if chosen[0].coverage == 0, !isFull { return nil }
        return branch(chosen, constraints, sortFields, in: collection)
    }

    private func candidates(
        _ constraints: Constraints, _ sortFields: [Query.Order], in collection: ScannedCollection,
        scope: IndexDefinition.Scope
    ) -> [Candidate] {
        catalog.definitions(for: collection.id)
            .filter { $0.state == .ready && $0.scope == scope }
            .compactMap { candidate($0, constraints, sortFields) }
            .sorted { ($0.coverage, $1.definition.id) > ($1.coverage, $0.definition.id) }
    }

    private func candidate(
        _ definition: IndexDefinition, _ constraints: Constraints, _ sortFields: [Query.Order]
    ) -> Candidate? {
        let headCount = definition.fields.count - sortFields.count
        guard headCount >= 0 else { return nil }
        let reverse = definition.nameDescending != query.nameDescending
        for (field, order) in zip(definition.fields.dropFirst(headCount), sortFields) {
            guard field.path == order.field, field.kind == (order.descending != reverse ? .descending : .ascending)
            else {
                return nil
            }
        }
        var candidate = Candidate(definition: definition, reverse: reverse, equalities: [])
        for field in definition.fields.prefix(headCount) {
            if field.kind == .contains {
                guard let membership = constraints.memberships.first(where: { $0.path == field.path }) else {
                    return nil
                }
                candidate.membership = membership
            } else {
                guard constraints.isEquality(field.path), constraints.ranges(field.path).point != nil else {
                    return nil
                }
                candidate.equalities.append(field.path)
            }
        }
        return candidate
    }

    private func branch(
        _ chosen: [Candidate], _ constraints: Constraints, _ sortFields: [Query.Order],
        in collection: ScannedCollection
    ) -> QueryPlan.Branch {
        let first = chosen[0]
        let complemented = first.definition.fields.suffix(sortFields.count).map { $0.kind == .descending }
        var covered: Set<Int> = []
        for candidate in chosen {
            for path in candidate.equalities { covered.formUnion(constraints.indices(of: path)) }
            if let membership = candidate.membership, !isCutElement(membership.value) {
                covered.insert(membership.index)
            }
        }
        // The first sort field bounds the scan; conditions on later fields are checked in the entries.
        var components: [QueryPlan.ComponentFilter] = []
        for (index, order) in sortFields.enumerated() {
            let ranges = constraints.ranges(order.field)
            let predicates = constraints.indices(of: order.field)
            if ranges.needsCheck || predicates.isEmpty { continue }
            covered.formUnion(predicates)
            if index > 0 { components.append(QueryPlan.ComponentFilter(component: index, ranges: ranges)) }
        }
        let isGroup = first.definition.scope == .collectionGroup
        let parts = constraints.parts(query)
        let bounds = suffixBounds(parts, namePrefix: collection.namePrefix, reverse: first.reverse)
        let residual = constraints.residual(covered: covered)
        // Without sort fields names lead the suffixes, and the ranges of the sources are ranges of names.
        let names = sortFields.isEmpty ? nil : constraints.names
        return QueryPlan.Branch(
            sources: chosen.map { source($0, constraints, sortFields, in: collection, within: bounds.range) },
            reverse: first.reverse, complemented: complemented, parts: parts, namePrefix: collection.namePrefix,
            keyPrefix: isGroup ? [] : collection.prefix, nameIsPath: isGroup,
            nameComplemented: first.definition.nameDescending, names: names, components: components, residual: residual,
            isExact: residual.isEmpty && components.isEmpty && names == nil && bounds.isExact)
    }

    private func isCutElement(_ value: Value) -> Bool {
        let bytes = IndexValue.encode(value)
        return bytes.count > IndexValue.sizeMax(tag: bytes[0])
    }

    private func source(
        _ candidate: Candidate, _ constraints: Constraints, _ sortFields: [Query.Order],
        in collection: ScannedCollection,
        within bounds: KeyRange
    ) -> QueryPlan.Source {
        let definition = candidate.definition
        var prefix = IndexKey.definitionPrefix(definition, collectionPrefix: collection.prefix)
        for field in definition.fields.dropLast(sortFields.count) {
            if field.kind == .contains, let membership = candidate.membership {
                IndexValue.appendCut(membership.value, to: &prefix)
            } else if let point = constraints.ranges(field.path).point {
                NormalizedQuery.appendComponent(point, descending: field.kind == .descending, to: &prefix)
            }
        }
        return QueryPlan.Source(
            keyspace: .entries, prefix: prefix, ranges: ranges(definition, constraints, sortFields, within: bounds),
            properties: Self.properties(definition), isGroupScope: definition.scope == .collectionGroup)
    }

    /// The ranges of suffixes: of their first component, which is the name when there are no sort fields.
    private func ranges(
        _ definition: IndexDefinition, _ constraints: Constraints, _ sortFields: [Query.Order], within bounds: KeyRange
    ) -> [KeyRange] {
        let isDescending: Bool
        let values: [KeyRange]
        if let first = sortFields.first {
            isDescending = definition.fields[definition.fields.count - sortFields.count].kind == .descending
            values = constraints.ranges(first.field).ranges
        } else {
            isDescending = definition.nameDescending
            values = constraints.names?.ranges ?? [KeyRange(lower: [], upper: [0xFF])]
        }
        let ascending = values.map { Self.ascending($0, descending: isDescending) }
        return ValueRanges.intersection(isDescending ? ascending.reversed() : ascending, bounds)
    }

    static func properties(_ definition: IndexDefinition) -> String {
        let fields = definition.fields.map { field in
            switch field.kind {
            case .ascending: "\(field.path) ASC"
            case .descending: "\(field.path) DESC"
            case .contains: "\(field.path) CONTAINS"
            case .vector(let dimension): "\(field.path) VECTOR<\(dimension)>"
            }
        }
        return "(" + (fields + ["__name__ \(definition.nameDescending ? "DESC" : "ASC")"]).joined(separator: ", ") + ")"
    }
}
