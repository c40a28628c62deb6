import HearthEngine
import HearthModel

/// Decides whether the service would answer a query: it does so only from indexes, and fails without one that fits.
///
/// The planner answers every query, and for that walks indexes backwards, filters and sorts. This decision knows
/// nothing of plans, only of definitions. For each alternative of the filter, in disjunctive normal form:
///
/// - What an index must have is the fields of equalities (`==`, `in`, `is null`, `is NaN`), those of array memberships, then
///   the completed order without fields that equalities fix, then `__name__` in its direction.
/// - An index begins with some of the equalities and at most one membership, in any order and direction, and ends with
///   the whole order, direction for direction: the service walks no index backwards. Several indexes with the same
///   end are merged; together they must have all equalities and memberships.
/// - Where equalities and memberships alone are left, an index of either direction serves `==`, unless names are
///   ordered descending. Without any condition the documents themselves are ordered by name, ascending.
/// - An index of a field is there unless the field's override, or the nearest above it, leaves it out. Indexes of
///   collection group scope exist only by an override, and serve only groups. Composite indexes of that scope serve
///   collections, too.
///
/// Sources: "Index types in Cloud Firestore" (index modes, "Queries supported by composite indexes", single-field index
/// exemptions); answers of the service that github.com/t-k/fireemu recorded in September 2026
/// (`conformance/fs-query-index-production.json`: descending orders, names, exemptions, scopes, messages).
struct RequiredIndexes {
    let query: NormalizedQuery
    let catalog: IndexCatalog

    /// The index that the service would ask for; nil when those that exist serve the query.
    var missing: MissingIndex? {
        let collectionID: String
        let isGroup: Bool
        switch query.query.scope {
        case .collection(let id): (collectionID, isGroup) = (id, false)
        case .collectionGroup(let id): (collectionID, isGroup) = (id, true)
        // By name alone.
        case .anyCollection, .allDescendants: return nil
        }
        let ready = Available(catalog, collectionID, isGroup: isGroup, includesBuilding: false)
        for conjunction in query.disjunction {
            let needs = Needs(conjunction, query)
            if ready.serve(needs) { continue }
            let all = Available(catalog, collectionID, isGroup: isGroup, includesBuilding: true)
            let definition = IndexDefinition(
                id: 0, collectionID: collectionID, scope: isGroup ? .collectionGroup : .collection,
                fields: needs.fields, nameDescending: needs.nameDescending)
            return MissingIndex(
                definition: definition, isBuilding: all.serve(needs),
                hasSeveralInequalities: NormalizedQuery.inequalityFields(query.query.filter).count > 1,
                otherIndexes: definition.fields.first.map { field in
                    catalog.override(for: field.path, in: collectionID)?.indexes ?? FieldOverride.automaticIndexes
                } ?? [])
        }
        return nil
    }
}

/// What the indexes of one alternative of a query must have.
private struct Needs {
    private(set) var equalities: [FieldPath] = []
    private(set) var memberships: [FieldPath] = []
    let order: [IndexField]
    let nameDescending: Bool
    /// The field and the dimension of a nearest-neighbour search.
    let vector: IndexField?
    /// Documents that are looked up by their names.
    let isLookup: Bool

    init(_ conjunction: NormalizedQuery.Conjunction, _ query: NormalizedQuery) {
        var isLookup = false
        for predicate in conjunction {
            switch predicate {
            case .field(let path, .equal, _), .unary(let path, .isNull), .unary(let path, .isNaN):
                if !equalities.contains(path) { equalities.append(path) }
            case .field(let path, .arrayContains, _):
                if !memberships.contains(path) { memberships.append(path) }
            case .names(let ranges): isLookup = isLookup || ranges.isOneName
            case .field, .unary: break
            }
        }
        self.isLookup = isLookup
        let fixed = equalities
        order = query.orders.filter { !$0.field.isDocumentName && !fixed.contains($0.field) }.map { order in
            IndexField(path: order.field, kind: order.descending ? .descending : .ascending)
        }
        nameDescending = query.nameDescending
        vector = query.query.findNearest.map { search in
            IndexField(path: search.field, kind: .vector(dimension: search.vector.count))
        }
    }

    /// Those of the one index that would serve alone.
    var fields: [IndexField] {
        memberships.map { IndexField(path: $0, kind: .contains) } + equalities.map(equality) + order
            + (vector.map { [$0] } ?? [])
    }

    private func equality(_ path: FieldPath) -> IndexField {
        // The only field of an index has the direction of the names.
        let isAlone = equalities.count == 1 && memberships.isEmpty && order.isEmpty
        return IndexField(path: path, kind: isAlone && nameDescending ? .descending : .ascending)
    }
}

/// The indexes of a collection id that the service would have.
private struct Available {
    let catalog: IndexCatalog
    let collectionID: String
    let isGroup: Bool
    let includesBuilding: Bool
    private let definitions: [IndexDefinition]

    init(_ catalog: IndexCatalog, _ collectionID: String, isGroup: Bool, includesBuilding: Bool) {
        self.catalog = catalog
        self.collectionID = collectionID
        self.isGroup = isGroup
        self.includesBuilding = includesBuilding
        definitions = catalog.definitions.filter { definition in
            guard UTF8Order.equal(definition.collectionID, collectionID),
                includesBuilding || definition.state == .ready
            else { return false }
            return switch definition.scope {
            case .collection: !isGroup
            case .collectionGroup: isGroup || !definition.isSingleField
            case .expiry: false
            }
        }
    }

    func serve(_ needs: Needs) -> Bool {
        if let vector = needs.vector { return serves(vector, needs) }
        if needs.order.isEmpty, !needs.nameDescending {
            return needs.equalities.isEmpty && needs.memberships.isEmpty || covers(needs, nameDescending: false)
                || covers(needs, nameDescending: true)
        }
        return needs.isLookup && needs.order.isEmpty || covers(needs, nameDescending: needs.nameDescending)
    }

    /// Whether the indexes that end with the order have all equalities and memberships, or none are needed.
    private func covers(_ needs: Needs, nameDescending: Bool) -> Bool {
        var equalities = Set(needs.equalities)
        var memberships = Set(needs.memberships)
        var isFound = false
        func use(_ head: ArraySlice<IndexField>) {
            let contained = head.filter { $0.kind == .contains }.map(\.path)
            let equal = head.filter { $0.kind != .contains }.map(\.path)
            guard contained.allSatisfy(needs.memberships.contains), equal.allSatisfy(needs.equalities.contains) else {
                return
            }
            isFound = true
            equalities.subtract(equal)
            memberships.subtract(contained)
        }
        for definition in definitions where definition.nameDescending == nameDescending && definition.hasNoVector {
            let headCount = definition.fields.count - needs.order.count
            guard headCount >= 0, Array(definition.fields.dropFirst(headCount)) == needs.order else { continue }
            use(definition.fields.prefix(headCount))
        }
        if !isGroup {
            let direction: IndexField.Kind = nameDescending ? .descending : .ascending
            if needs.order.isEmpty {
                for path in needs.equalities where hasAutomaticIndex(path, direction) {
                    use([IndexField(path: path, kind: direction)])
                }
                for path in needs.memberships where !nameDescending && hasAutomaticIndex(path, .contains) {
                    use([IndexField(path: path, kind: .contains)])
                }
            } else if needs.order.count == 1, needs.order[0].kind == direction,
                hasAutomaticIndex(needs.order[0].path, direction)
            {
                use([])
            }
        }
        return isFound && equalities.isEmpty && memberships.isEmpty
    }

    private func hasAutomaticIndex(_ path: FieldPath, _ kind: IndexField.Kind) -> Bool {
        catalog.indexes(of: collectionID).hasIndex(path.segments, includesBuilding ? .present : .certain) { $0 == kind }
    }

    /// A vector index has the fields of all filters, in any order, and ends with the vector.
    private func serves(_ vector: IndexField, _ needs: Needs) -> Bool {
        let paths = Set(needs.equalities + needs.order.map(\.path))
        return definitions.contains { definition in
            guard definition.fields.last == vector else { return false }
            let head = definition.fields.dropLast()
            let contained = head.filter { $0.kind == .contains }.map(\.path)
            return Set(contained) == Set(needs.memberships)
                && Set(head.filter { $0.kind != .contains }.map(\.path)) == paths
        }
    }
}

extension ValueRanges {
    /// Whether a range of names holds one name alone.
    fileprivate var isOneName: Bool {
        ranges.count == 1 && ranges[0].upper == KeyRange.successor(ofPrefix: ranges[0].lower)
    }
}
