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
    /// What stays uncovered in a collection is filtered afterwards; in a collection group only a full cover will do.
    func definedBranch(
        _ constraints: Constraints, _ sortFields: [Query.Order], in place: CollectionPlace, scope: IndexDefinition.Scope
    ) -> QueryPlan.Branch? {
        // The names in a group's index start at the root; below a document they would have to be cut out of its middle.
        if scope == .collectionGroup, !query.parentPath.isRoot { return nil }
        let candidates = candidates(constraints, sortFields, in: place, scope: scope)
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
        return branch(chosen, constraints, sortFields, in: place, isFull: isFull)
    }

    private func candidates(
        _ constraints: Constraints, _ sortFields: [Query.Order], in place: CollectionPlace, scope: IndexDefinition.Scope
    ) -> [Candidate] {
        catalog.definitions(for: place.collectionID)
            .filter { $0.state == .ready && $0.scope == scope }
            .compactMap { candidate($0, constraints, sortFields) }
            .sorted { ($0.coverage, $1.definition.id) > ($1.coverage, $0.definition.id) }
    }

    private func candidate(
        _ definition: IndexDefinition, _ constraints: Constraints, _ sortFields: [Query.Order]
    ) -> Candidate? {
        let headCount = definition.fields.count - sortFields.count
        guard headCount >= 0 else { return nil }
        let nameDescending = query.orders.last?.descending ?? false
        let reverse = definition.nameDescending != nameDescending
        for (field, order) in zip(definition.fields.dropFirst(headCount), sortFields) {
            guard field.path == order.field, field.kind == (order.descending != reverse ? .descending : .ascending) else {
                return nil
            }
        }
        var candidate = Candidate(definition: definition, reverse: reverse, equalities: [])
        for field in definition.fields.prefix(headCount) {
            if field.kind == .contains {
                guard let membership = constraints.memberships.first(where: { $0.path == field.path }) else { return nil }
                candidate.membership = membership
            } else {
                guard constraints.isEquality(field.path), constraints.ranges(field.path).point != nil else { return nil }
                candidate.equalities.append(field.path)
            }
        }
        return candidate
    }

    private func branch(
        _ chosen: [Candidate], _ constraints: Constraints, _ sortFields: [Query.Order], in place: CollectionPlace,
        isFull: Bool
    ) -> QueryPlan.Branch {
        let first = chosen[0]
        let complemented = first.definition.fields.suffix(sortFields.count).map { $0.kind == .descending }
        var covered: Set<Int> = []
        for candidate in chosen {
            for path in candidate.equalities { covered.formUnion(constraints.indices(of: path)) }
            if let membership = candidate.membership, !isCutElement(membership.value) { covered.insert(membership.index) }
        }
        if let path = sortFields.first?.field, !constraints.ranges(path).needsCheck {
            covered.formUnion(constraints.indices(of: path))
        }
        let isGroup = first.definition.scope == .collectionGroup
        return QueryPlan.Branch(
            sources: chosen.map { source($0, constraints, sortFields, in: place) }, reverse: first.reverse,
            complemented: complemented, parts: constraints.parts(query), namePrefix: place.namePrefix,
            keyPrefix: isGroup ? [] : place.prefix, nameIsPath: isGroup,
            nameComplemented: first.definition.nameDescending,
            residual: constraints.residual(covered: covered, namesCovered: false), checksScope: false,
            missingIndex: isFull ? nil : missingIndex(constraints, place.collectionID, first.definition.scope))
    }

    private func isCutElement(_ value: Value) -> Bool {
        let bytes = IndexValue.encode(value)
        return bytes.count > IndexValue.sizeMax(tag: bytes[0])
    }

    private func source(
        _ candidate: Candidate, _ constraints: Constraints, _ sortFields: [Query.Order], in place: CollectionPlace
    ) -> QueryPlan.Source {
        let definition = candidate.definition
        var prefix = IndexKey.definitionPrefix(definition, collectionPrefix: place.prefix)
        for field in definition.fields.dropLast(sortFields.count) {
            if field.kind == .contains, let membership = candidate.membership {
                IndexValue.appendCut(membership.value, to: &prefix)
            } else if let point = constraints.ranges(field.path).point {
                NormalizedQuery.appendComponent(point, descending: field.kind == .descending, to: &prefix)
            }
        }
        return QueryPlan.Source(
            keyspace: .entries, prefix: prefix, ranges: ranges(definition, constraints, sortFields),
            properties: Self.properties(definition), isGroupScope: definition.scope == .collectionGroup)
    }

    private func ranges(
        _ definition: IndexDefinition, _ constraints: Constraints, _ sortFields: [Query.Order]
    ) -> [KeyRange] {
        guard let first = sortFields.first else { return [KeyRange(lower: [], upper: nil)] }
        var values = constraints.ranges(first.field)
        if query.hasBounds, constraints.constantsBefore(first.field, query).isEmpty {
            let bound = Self.firstComponentRange(query.bounds, descending: first.descending)
            values = values.intersection(ValueRanges(ranges: [bound]))
        }
        let isDescending = definition.fields[definition.fields.count - sortFields.count].kind == .descending
        let ranges = values.ranges.map { Self.ascending($0, descending: isDescending) }
        return isDescending ? ranges.reversed() : ranges
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

    /// The definition that production would ask for: the equalities, then the order.
    func missingIndex(
        _ constraints: Constraints, _ collectionID: String, _ scope: IndexDefinition.Scope
    ) -> IndexDefinition {
        let sortFields = constraints.sortFields(query)
        var fields = constraints.memberships.map { IndexField(path: $0.path, kind: .contains) }
        for (path, _) in constraints.fields where constraints.isEquality(path) {
            fields.append(IndexField(path: path, kind: .ascending))
        }
        fields += sortFields.map { IndexField(path: $0.field, kind: $0.descending ? .descending : .ascending) }
        return IndexDefinition(
            id: 0, collectionID: collectionID, scope: scope, fields: fields,
            nameDescending: query.orders.last?.descending ?? false)
    }
}
