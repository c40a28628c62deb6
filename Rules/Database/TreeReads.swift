import HearthModel
import HearthTree

/// The properties of snapshots. They read only the data that they need.
extension TreeEvaluation {
    private func reading<Value>(
        _ snapshot: TreeSnapshot, _ read: (any TreeData) throws(Status) -> Value
    ) throws(TreeFailure) -> Value {
        try spend(TreeRulesLimits.readSteps)
        guard let data = snapshot.isNew ? after : before else {
            preconditionFailure("only a rule for writes, which have a state after them, compiles with newData")
        }
        do throws(Status) {
            return try read(data)
        } catch {
            throw .unreadable(error)
        }
    }

    func exists(_ snapshot: TreeSnapshot) throws(TreeFailure) -> Bool {
        if snapshot.isImpossible { return false }
        if let node = snapshot.node { return !node.isEmpty }
        return try reading(snapshot) { data throws(Status) in try data.exists(at: snapshot.path) }
    }

    private func hasChildren(_ snapshot: TreeSnapshot) throws(TreeFailure) -> Bool {
        if snapshot.isImpossible { return false }
        if let node = snapshot.node { return node.childCount > 0 }
        return try reading(snapshot) { data throws(Status) in try data.hasChildren(at: snapshot.path) }
    }

    private func leaf(_ snapshot: TreeSnapshot) throws(TreeFailure) -> Leaf? {
        if snapshot.isImpossible { return nil }
        if let node = snapshot.node { return node.value.map(Leaf.init) }
        return try reading(snapshot) { data throws(Status) in try data.leaf(at: snapshot.path) }
    }

    private func scalar(_ snapshot: TreeSnapshot) throws(TreeFailure) -> Scalar? {
        switch try leaf(snapshot) {
        case nil: return nil
        case .value(let value):
            if case .string(let string) = value { try spend(bytes: string.utf8.count) }
            return value
        case .largeString(let sizeBytes):
            if let node = snapshot.node { return node.value }
            // Reading costs its size, whatever is done with the value; a decision without enough steps left does not
            // begin to read.
            try spend(bytes: sizeBytes)
            return try reading(snapshot) { data throws(Status) in try data.value(at: snapshot.path) }
        }
    }

    private func priority(_ snapshot: TreeSnapshot) throws(TreeFailure) -> Scalar? {
        if snapshot.isImpossible { return nil }
        if let node = snapshot.node { return node.priority }
        return try reading(snapshot) { data throws(Status) in try data.priority(at: snapshot.path) }
    }

    /// - Throws: `unreadable` for an unresolved server value: rules only see the resolved value.
    private func value(_ scalar: Scalar) throws(TreeFailure) -> TreeRuleValue {
        guard let value = TreeRuleValue(scalar) else {
            throw .unreadable(Status(.internal, "A write was judged before its server values were worked out."))
        }
        return value
    }

    func property(_ property: TreeExpression.SnapshotProperty, _ snapshot: TreeSnapshot) throws(TreeFailure)
        -> TreeRuleValue
    {
        switch property {
        case .value:
            if let scalar = try scalar(snapshot) { return try value(scalar) }
            return try hasChildren(snapshot) ? .children : .null
        case .exists: return .bool(try exists(snapshot))
        case .hasChildren: return .bool(try hasChildren(snapshot))
        case .priority:
            guard let scalar = try priority(snapshot) else { return .null }
            return try value(scalar)
        case .isNumber: return .bool(try leaf(snapshot)?.isNumber == true)
        case .isString: return .bool(try leaf(snapshot)?.isString == true)
        case .isBoolean: return .bool(try leaf(snapshot)?.isBoolean == true)
        }
    }
}

extension Leaf {
    fileprivate var isNumber: Bool { if case .value(let value) = self { value.number != nil } else { false } }
    fileprivate var isBoolean: Bool { if case .value(let value) = self { value.bool != nil } else { false } }

    fileprivate var isString: Bool {
        switch self {
        case .value(let value): value.string != nil
        case .largeString: true
        }
    }
}

extension TreeQuery {
    /// A member of `query` when the request has no query.
    static func noRuleValue(_ member: TreeExpression.QueryMember) -> TreeRuleValue {
        switch member {
        case .orderByKey, .orderByValue, .orderByPriority: .bool(false)
        case .orderByChild, .startAt, .endAt, .equalTo, .limitToFirst, .limitToLast: .null
        }
    }

    /// A member of `query`. The order by priority is the default: it counts as requested only when there is a bound.
    func ruleValue(_ member: TreeExpression.QueryMember) -> TreeRuleValue {
        switch member {
        case .orderByKey: return .bool(index == .key)
        case .orderByValue: return .bool(index == .value)
        case .orderByPriority: return .bool(index == .priority && !isUnfiltered)
        case .orderByChild:
            guard case .child(let path) = index else { return .null }
            return .string(path.string)
        case .startAt: return boundValue(start)
        case .endAt: return boundValue(end)
        case .equalTo:
            guard let start, let end, start.isInclusive, end.isInclusive else { return .null }
            let first = boundValue(start)
            return first == boundValue(end) ? first : .null
        case .limitToFirst: return limit.map { isLimitedToLast ? .null : .number(Double($0)) } ?? .null
        case .limitToLast: return limit.map { isLimitedToLast ? .number(Double($0)) : .null } ?? .null
        }
    }

    private func boundValue(_ bound: Bound?) -> TreeRuleValue {
        guard let bound else { return .null }
        if index == .key {
            guard case .key(let key) = bound.key else { return .null }
            return .string(key.string)
        }
        return bound.value.flatMap { TreeRuleValue($0) } ?? .null
    }
}
