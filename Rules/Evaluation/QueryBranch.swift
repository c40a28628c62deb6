import HearthModel

/// One branch of a query's filter: what all documents in its result have in common.
struct QueryBranch {
    private var constraints: [RulesQuery.Constraint]

    /// All branches of a query, with one for each value of `in` and `array-contains-any`; nil when there are too many.
    static func branches(of query: RulesQuery) -> [QueryBranch]? {
        var branches: [QueryBranch] = []
        for constraints in query.branches.isEmpty ? [[]] : query.branches {
            var expanded: [[RulesQuery.Constraint]] = [[]]
            for constraint in constraints {
                let alternatives = Self.alternatives(of: constraint)
                if expanded.count * max(alternatives.count, 1) + branches.count > RulesLimits.branchesMax { return nil }
                expanded = expanded.flatMap { known in alternatives.map { known + [$0] } }
            }
            branches += expanded.map { QueryBranch(constraints: $0) }
        }
        return branches
    }

    private static func alternatives(of constraint: RulesQuery.Constraint) -> [RulesQuery.Constraint] {
        switch constraint.test {
        case .field(.in, .array(let values)):
            values.map { RulesQuery.Constraint(constraint.path, .equal, $0) }
        case .field(.arrayContainsAny, .array(let values)):
            values.map { RulesQuery.Constraint(constraint.path, .arrayContains, $0) }
        default: [constraint]
        }
    }

    // MARK: resource

    /// Sets the `resource` and the path of this branch for an evaluation.
    func prepare(_ evaluation: Evaluation, _ query: RulesQuery) -> Judge.Target {
        var entries: [(name: String, value: RuleValue)] = []
        let name = documentName
        if let name {
            entries.append(("__name__", .path(RulePath(database: evaluation.request.database, path: name.segments))))
            entries.append(("id", .string(name.segments.last ?? "")))
        }
        entries.append(("data", .map(.built(data(isPartial: !query.isComplete)))))
        evaluation.branch = .built(BuiltMap(entries, isPartial: !query.isComplete))
        if query.isGroup {
            let known = evaluation.segments.count
            evaluation.segments.append(query.collectionID)
            if let id = name?.segments.last { evaluation.segments.append(id) }
            return .group(parentCount: known)
        }
        if let id = name?.segments.last, name?.parent == evaluation.request.path {
            evaluation.segments.append(id)
            return .document
        }
        return .collection
    }

    private var documentName: ResourcePath? {
        for constraint in constraints where constraint.path.isDocumentName {
            switch constraint.test {
            case .name(let path): return path
            case .field(.equal, .reference(let name)):
                return RulePath(reference: name).documentSegments.map { ResourcePath($0) }
            default: break
            }
        }
        return nil
    }

    /// The filtered fields. When the map is partial, other fields are unknown; otherwise they count as missing.
    private func data(isPartial: Bool) -> BuiltMap {
        let root = FieldTree()
        for constraint in constraints where !constraint.path.isDocumentName {
            root.field(constraint.path.segments[...]).add(constraint.test)
        }
        return root.map(isPartial)
    }
}

/// Builds the fields of a branch.
private final class FieldTree {
    private var members: [(name: String, field: FieldTree)] = []
    private var value: RuleValue?
    private var constraint: RuleConstraint?

    func field(_ path: ArraySlice<String>) -> FieldTree {
        guard let first = path.first else { return self }
        if let member = members.first(where: { UTF8Order.equal($0.name, first) }) {
            return member.field.field(path.dropFirst())
        }
        let member = FieldTree()
        members.append((first, member))
        return member.field(path.dropFirst())
    }

    func add(_ test: RulesQuery.Constraint.Test) {
        switch test {
        case .field(.equal, let value): self.value = self.value ?? RuleValue(value)
        case .unary(.isNull): value = .null
        case .unary(.isNaN): value = .float(.nan)
        case .unary(.isNotNull): change { _ in }
        case .unary(.isNotNaN): change { $0.excluded.append(.float(.nan)) }
        case .field(.notIn, .array(let values)): change { $0.excluded += values.map { RuleValue($0) } }
        case .field(let comparison, let value): add(comparison, RuleValue(value))
        case .name: break
        }
    }

    private func add(_ comparison: Filter.Operator, _ value: RuleValue) {
        change { constraint in
            switch comparison {
            case .lessThan: constraint.lessen(value, isInclusive: false)
            case .lessThanOrEqual: constraint.lessen(value, isInclusive: true)
            case .greaterThan: constraint.raise(value, isInclusive: false)
            case .greaterThanOrEqual: constraint.raise(value, isInclusive: true)
            case .notEqual: constraint.excluded.append(value)
            case .arrayContains: constraint.contained.append(value)
            // Each value has made a branch of its own; a value that is not a list gives no information.
            case .equal, .in, .notIn, .arrayContainsAny: break
            }
        }
    }

    private func change(_ body: (RuleConstraint) -> Void) {
        let known = constraint ?? RuleConstraint()
        body(known)
        constraint = known
    }

    func map(_ isPartial: Bool) -> BuiltMap {
        BuiltMap(members.map { ($0.name, $0.field.result(isPartial)) }, isPartial: isPartial)
    }

    /// An equality determines the whole field.
    private func result(_ isPartial: Bool) -> RuleValue {
        if let value { return value }
        if let constraint { return .constraint(constraint) }
        return .map(.built(map(isPartial)))
    }
}
