import HearthModel

/// Decides whether single documents belong to a query's result, without regard to its limit. Make one for many
/// documents: values that depend only on the query are computed once.
package struct ClientQueryMatcher: Sendable {
    private let query: ClientQuery
    private let orders: [Query.Order]
    private let filters: [Filter]

    package init(_ query: ClientQuery) {
        self.query = query
        orders = query.normalizedOrders
        filters = query.filters.flattened
    }

    package func matches(_ document: ClientDocument) -> Bool {
        guard document.isFound, matchesPath(document.key) else { return false }
        for order in orders where !order.field.isDocumentName {
            if document.fields[path: order.field] == nil { return false }
        }
        return filters.allSatisfy { Self.matches($0, document) } && matchesBounds(document)
    }

    private func matchesPath(_ key: ResourcePath) -> Bool {
        if let group = query.collectionGroup {
            return UTF8Order.equal(key.collectionID, group) && query.path.isPrefix(of: key)
        }
        return query.path.isDocument ? query.path == key : query.path.isParent(of: key)
    }

    // MARK: Bounds

    private func matchesBounds(_ document: ClientDocument) -> Bool {
        if let start = query.start {
            let order = compare(start, document)
            if order > 0 || order == 0 && !start.isInclusive { return false }
        }
        if let end = query.end {
            let order = compare(end, document)
            if order < 0 || order == 0 && !end.isInclusive { return false }
        }
        return true
    }

    /// Negative, zero or positive, as the bound sorts before, equal to or after the document.
    private func compare(_ bound: ClientQuery.Bound, _ document: ClientDocument) -> Int {
        for (value, order) in zip(bound.values, orders) {
            var result = 0
            if order.field.isDocumentName {
                if let key = ResourcePath(reference: value) { result = ResourcePath.compare(key, document.key) }
            } else if let field = document.fields[path: order.field] {
                result = ClientValueOrder.compare(value, field)
            }
            if result != 0 { return order.descending ? -result : result }
        }
        return 0
    }

    // MARK: Filters

    private static func matches(_ filter: Filter, _ document: ClientDocument) -> Bool {
        switch filter {
        case .and(let members): return members.allSatisfy { matches($0, document) }
        case .or(let members): return members.contains { matches($0, document) }
        case .field(let path, let op, let operand):
            if path.isDocumentName { return matches(key: document.key, op, operand) }
            guard let value = document.fields[path: path] else { return false }
            return matches(value, op, operand)
        case .unary: preconditionFailure("unary filters were converted to comparisons")
        }
    }

    private static func matches(key: ResourcePath, _ op: Filter.Operator, _ operand: Value) -> Bool {
        switch op {
        case .in, .notIn:
            guard case .array(let elements) = operand else { return false }
            return elements.contains { ResourcePath(reference: $0) == key } == (op == .in)
        default:
            guard let other = ResourcePath(reference: operand) else { return false }
            return holds(op, ResourcePath.compare(key, other))
        }
    }

    private static func matches(_ value: Value, _ op: Filter.Operator, _ operand: Value) -> Bool {
        switch op {
        case .equal: return ClientValueOrder.equivalent(value, operand)
        case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
            return isFindable(operand) && ClientValueOrder.areComparable(value, operand)
                && holds(op, ClientValueOrder.compare(value, operand))
        case .notEqual: return value != .null && !ClientValueOrder.equivalent(value, operand)
        case .in: return elements(operand).contains { isFindable($0) && ClientValueOrder.equivalent($0, value) }
        case .notIn:
            return value != .null
                && elements(operand).allSatisfy { $0 != .null && !ClientValueOrder.equivalent($0, value) }
        case .arrayContains:
            guard isFindable(operand), case .array(let array) = value else { return false }
            return array.contains { ClientValueOrder.equivalent($0, operand) }
        case .arrayContainsAny:
            guard case .array(let array) = value else { return false }
            return elements(operand).contains { element in
                isFindable(element) && array.contains { ClientValueOrder.equivalent($0, element) }
            }
        }
    }

    private static func holds(_ op: Filter.Operator, _ order: Int) -> Bool {
        switch op {
        case .equal: order == 0
        case .notEqual: order != 0
        case .lessThan: order < 0
        case .lessThanOrEqual: order <= 0
        case .greaterThan: order > 0
        case .greaterThanOrEqual: order >= 0
        default: false
        }
    }

    /// For the server, null and NaN are in no list and no range: only `==` matches them.
    private static func isFindable(_ operand: Value) -> Bool {
        switch operand {
        case .null: false
        case .double(let number): !number.isNaN
        default: true
        }
    }

    private static func elements(_ operand: Value) -> [Value] {
        if case .array(let elements) = operand { elements } else { [] }
    }
}

extension ClientQuery {
    /// For a single document; use `ClientQueryMatcher` for many.
    package func matches(_ document: ClientDocument) -> Bool { ClientQueryMatcher(self).matches(document) }
}
