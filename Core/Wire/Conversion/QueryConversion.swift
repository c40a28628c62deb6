import HearthModel

/// Validates received structured queries and converts them to the model.
///
/// Rules that need only parts of the query are checked here. Rules on the query as a whole, such as the number of
/// disjunctions, belong to the planner, which has the normal form.
extension StructuredQueryMessage {
    /// - Parameter parent: the database's root or a document.
    /// - Throws: INVALID_ARGUMENT in the service's wording.
    package func query(parent: ResourceName) throws(Status) -> HearthModel.Query {
        var query = Query(parent: parent, scope: try scope())
        query.filter = try `where`?.topLevelFilter(in: parent.database)
        query.orders = try orders()
        query.start = startAt.map { Query.Cursor(values: $0.values, before: $0.before) }
        query.end = endAt.map { Query.Cursor(values: $0.values, before: $0.before) }
        if offset < 0 { throw .invalidArgument("offset is negative") }
        query.offset = Int(offset)
        if let limit, limit < 0 { throw .invalidArgument("limit is negative") }
        query.limit = limit.map { Int($0) }
        query.projection = try projection()
        query.findNearest = try findNearest?.findNearest()
        if query.findNearest != nil { try refuseBesideFindNearest() }
        try query.validateKindless()
        return query
    }

    private func scope() throws(Status) -> Query.Scope {
        if from.count > 1 {
            throw .invalidArgument("StructuredQuery.from cannot have more than one collection selector.")
        }
        guard let selector = from.first else { return .anyCollection }
        if selector.collectionId.isEmpty { return selector.allDescendants ? .allDescendants : .anyCollection }
        try ResourceName.validate(collectionID: selector.collectionId)
        return selector.allDescendants ? .collectionGroup(selector.collectionId) : .collection(selector.collectionId)
    }

    private func orders() throws(Status) -> [Query.Order] {
        var orders: [Query.Order] = []
        for message in orderBy {
            let field = try FieldReference.path(message.field)
            orders.append(Query.Order(field: field, descending: message.direction == .descending))
        }
        try Query.Order.validate(orders)
        return orders
    }

    /// nil for all fields; a projection without fields counts as nil. The document's name is always returned.
    private func projection() throws(Status) -> [FieldPath]? {
        guard let select, !select.fields.isEmpty else { return nil }
        var paths: [FieldPath] = []
        for field in select.fields { paths.append(try FieldReference.path(field)) }
        return paths.filter { !$0.isDocumentName }
    }

    private func refuseBesideFindNearest() throws(Status) {
        if offset > 0 { throw .invalidArgument("A query offset cannot be used with FindNearest") }
        if limit != nil { throw .invalidArgument("A query limit cannot be used with FindNearest") }
        if startAt != nil || endAt != nil { throw .invalidArgument("Cursor has too many values.") }
    }
}

extension StructuredQueryMessage.FieldReference {
    fileprivate static func path(_ reference: Self?) throws(Status) -> FieldPath {
        try FieldPath(parsing: reference?.fieldPath ?? "")
    }
}

extension HearthModel.Query.Order {
    /// Checks the explicit orders of a query.
    static func validate(_ orders: [Self]) throws(Status) {
        var seen: Set<FieldPath> = []
        for (index, order) in orders.enumerated() {
            if !seen.insert(order.field).inserted {
                throw .invalidArgument("order by clause cannot contain duplicate fields \(order.field.string)")
            }
            if order.field.isDocumentName, index < orders.count - 1 {
                throw .invalidArgument("order by clause cannot contain more fields after the key")
            }
        }
    }
}

extension HearthModel.Query {
    /// Queries over several collections can only filter and order by name.
    fileprivate func validateKindless() throws(Status) {
        switch scope {
        case .collection, .collectionGroup: return
        case .anyCollection, .allDescendants: break
        }
        if let field = filter?.firstField(where: { !$0.isDocumentName }) {
            throw .invalidArgument("kind is required for filter: \(field.string)")
        }
        for order in orders where !order.field.isDocumentName || order.descending {
            throw .invalidArgument("kind is required for all orders except __key__ ascending")
        }
    }
}

extension HearthModel.Filter {
    fileprivate func firstField(where predicate: (FieldPath) -> Bool) -> FieldPath? {
        switch self {
        case .and(let filters), .or(let filters):
            for filter in filters {
                if let field = filter.firstField(where: predicate) { return field }
            }
            return nil
        case .field(let field, _, _), .unary(let field, _):
            return predicate(field) ? field : nil
        }
    }
}

// MARK: Filters

extension StructuredQueryMessage.Filter {
    /// nil for an AND without members, which filters nothing.
    fileprivate func topLevelFilter(in database: DatabaseName) throws(Status) -> HearthModel.Filter? {
        let filter = try filter(in: database, depth: 1)
        if case .and(let members) = filter, members.isEmpty { return nil }
        return filter
    }

    private func filter(in database: DatabaseName, depth: Int) throws(Status) -> HearthModel.Filter {
        if depth > Limits.filterDepthMax {
            throw .invalidArgument("The filter nests deeper than \(Limits.filterDepthMax) levels.")
        }
        if let compositeFilter { return try Self.composite(compositeFilter, in: database, depth: depth) }
        if let fieldFilter { return try fieldFilter.filter(in: database) }
        if let unaryFilter { return try unaryFilter.filter() }
        throw .invalidArgument("A filter must have a type.")
    }

    private static func composite(
        _ composite: StructuredQueryMessage.CompositeFilter, in database: DatabaseName, depth: Int
    ) throws(Status) -> HearthModel.Filter {
        guard composite.op == .and || composite.op == .or else {
            throw .invalidArgument("Unsupported CompositeFilter operator.")
        }
        if composite.op == .or, composite.filters.isEmpty {
            throw .invalidArgument("Composite filter must have at least one sub-filter.")
        }
        var members: [HearthModel.Filter] = []
        members.reserveCapacity(composite.filters.count)
        for filter in composite.filters { members.append(try filter.filter(in: database, depth: depth + 1)) }
        return composite.op == .and ? .and(members) : .or(members)
    }
}

extension StructuredQueryMessage.UnaryFilter {
    fileprivate func filter() throws(Status) -> HearthModel.Filter {
        guard let op = HearthModel.Filter.UnaryOperator(rawValue: Int(op.rawValue)) else {
            throw .invalidArgument("Unknown UnaryFilter operator.")
        }
        return .unary(try StructuredQueryMessage.FieldReference.path(field), op)
    }
}

extension StructuredQueryMessage.FieldFilter {
    fileprivate func filter(in database: DatabaseName) throws(Status) -> HearthModel.Filter {
        let path = try StructuredQueryMessage.FieldReference.path(field)
        guard let op = HearthModel.Filter.Operator(rawValue: Int(op.rawValue)) else {
            throw .invalidArgument("Unknown FieldFilter operator.")
        }
        guard let value else { throw ValueError.unset() }
        if let countMax = op.operandCountMax { try Self.validateList(value, op, countMax) }
        if path.isDocumentName { try Self.validateKey(value, op, in: database) }
        return .field(path, op, value)
    }

    private static func validateList(
        _ operand: Value, _ op: HearthModel.Filter.Operator, _ countMax: Int
    ) throws(Status) {
        guard case .array(let elements) = operand else {
            throw .invalidArgument("'\(op.name)' requires an ArrayValue.")
        }
        if elements.isEmpty { throw .invalidArgument("'\(op.name)' requires an non-empty ArrayValue.") }
        if elements.count > countMax {
            throw .invalidArgument("'\(op.name)' supports up to \(countMax) comparison values.")
        }
    }

    /// A document's name compares with references to documents of the same database only.
    private static func validateKey(
        _ operand: Value, _ op: HearthModel.Filter.Operator, in database: DatabaseName
    ) throws(Status) {
        var keys = [operand]
        switch op {
        case .arrayContains, .arrayContainsAny: throw .invalidArgument("the name __key__ is reserved")
        case .in, .notIn: if case .array(let elements) = operand { keys = elements }
        default: break
        }
        for key in keys {
            guard case .reference(let name) = key else {
                throw .invalidArgument("__key__ filter value must be a Key")
            }
            _ = try ResourceName(reference: name, in: database)
        }
    }
}

extension HearthModel.Filter.Operator {
    /// The maximum number of values in the operand; nil for operators whose operand is one value.
    fileprivate var operandCountMax: Int? {
        switch self {
        case .in, .arrayContainsAny: Limits.inValuesMax
        case .notIn: Limits.notInValuesMax
        default: nil
        }
    }
}

// MARK: Vector search

extension StructuredQueryMessage.FindNearest {
    private func resultField() throws(Status) -> FieldPath? {
        if distanceResultField.isEmpty { return nil }
        if FieldPath.isReserved(distanceResultField) {
            throw .invalidArgument("The distanceResultField.property.name \"\(distanceResultField)\" is reserved.")
        }
        return try FieldPath(parsing: distanceResultField)
    }

    fileprivate func findNearest() throws(Status) -> HearthModel.Query.FindNearest {
        let field = try StructuredQueryMessage.FieldReference.path(vectorField)
        let vector = try vector()
        guard let measure = HearthModel.Query.FindNearest.Measure(rawValue: Int(distanceMeasure.rawValue)) else {
            throw .invalidArgument("Unknown Distance Measure.")
        }
        guard let limit, limit >= 1, Int(limit) <= Limits.findNearestLimitMax else {
            throw .invalidArgument(
                "FindNearest.limit must be a positive integer of no more than \(Limits.findNearestLimitMax)")
        }
        if let distanceThreshold, !distanceThreshold.isFinite {
            throw .invalidArgument("distanceThreshold must be a finite number.")
        }
        return HearthModel.Query.FindNearest(
            field: field, vector: vector, measure: measure, limit: Int(limit),
            resultField: try resultField(),
            threshold: distanceThreshold)
    }

    private func vector() throws(Status) -> [Double] {
        guard let queryVector else { throw ValueError.unset() }
        // A map that only resembles a vector has a specific message for each difference.
        try ValueValidation.validate(queryVector, of: "query_vector")
        guard case .vector(let elements) = queryVector else {
            throw .invalidArgument("FindNearest.query_vector must be a vector.")
        }
        return elements
    }
}
