import HearthModel

/// The rules of shape that a query must obey, with Google's wordings. Sources: "Query limitations" of the
/// documentation, and messages of the service.
enum QueryRules {
    /// Rules of single filters.
    static func check(_ filter: Filter) throws(Status) {
        switch filter {
        case .and(let filters), .or(let filters):
            for filter in filters { try check(filter) }
        case .unary(let path, _):
            if path.isDocumentName { throw .invalidArgument("Unary filters are not allowed on __name__.") }
        case .field(let path, let op, let value):
            if path.isDocumentName { try checkName(op, value) } else { try checkOperand(op, value, of: path) }
        }
    }

    /// The parts of an operand must exist, and it must not be longer than an index stores. It need not be a value that
    /// a document could contain: a list within a list is simply equal to nothing.
    private static func checkOperand(_ op: Filter.Operator, _ value: Value, of path: FieldPath) throws(Status) {
        switch (op, value) {
        case (.in, .array(let values)), (.notIn, .array(let values)):
            for value in values { try checkOperand(value, at: path.string) }
        case (.arrayContainsAny, .array(let values)):
            for value in values { try checkOperand(value, at: path.string + "[*]") }
        case (.arrayContains, _): try checkOperand(value, at: path.string + "[*]")
        default: try checkOperand(value, at: path.string)
        }
    }

    private static func checkOperand(_ value: Value, at path: String) throws(Status) {
        try ValueValidation.validateOperand(value)
        if StorageSize.of(value) > Limits.indexedValueSizeBytesMax {
            throw .invalidArgument("value for \(path) is too large to be used in a query")
        }
    }

    private static func checkName(_ op: Filter.Operator, _ value: Value) throws(Status) {
        switch (op, value) {
        case (.arrayContains, _), (.arrayContainsAny, _): throw .invalidArgument("the name __key__ is reserved")
        case (.in, .array(let values)), (.notIn, .array(let values)):
            for value in values { try checkName(.equal, value) }
        case (_, .reference): break
        default: throw .invalidArgument("__key__ filter value must be a Key")
        }
    }

    /// Rules of the query as a whole, in Google's order: array membership, inequality fields, components.
    static func check(
        _ query: Query, disjunction: [NormalizedQuery.Conjunction], inequalities: Set<FieldPath>
    ) throws(Status) {
        try checkNegations(query.filter)
        for conjunction in disjunction {
            let memberships = conjunction.count { predicate in
                if case .field(_, .arrayContains, _) = predicate { true } else { false }
            }
            if memberships > 1 {
                throw .invalidArgument("A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
            }
        }
        if inequalities.count > Limits.inequalityFieldsMax {
            let names = inequalities.sorted().map(\.string).joined(separator: ", ")
            throw .invalidArgument(
                "The query contains \(inequalities.count) distinct inequality fields: [\(names)]. A query may not have "
                    + "more than \(Limits.inequalityFieldsMax) distinct inequality fields.")
        }
        try checkComponents(query, disjunction: disjunction)
        try checkOrders(query.orders, inequalities: inequalities)
        try checkCursors(query)
        try checkKindless(query)
        try checkNameEquality(query.filter, inequalities: inequalities)
        try checkFindNearest(query)
    }

    private static func checkNegations(_ filter: Filter?) throws(Status) {
        guard let filter else { return }
        var negations = 0
        var hasNotIn = false
        var hasDisjunction = false
        func walk(_ filter: Filter) {
            switch filter {
            case .and(let filters): filters.forEach(walk)
            case .or(let filters):
                hasDisjunction = true
                filters.forEach(walk)
            case .field(_, .notEqual, _): negations += 1
            case .field(_, .notIn, _):
                negations += 1
                hasNotIn = true
            case .field(_, .in, _), .field(_, .arrayContainsAny, _): hasDisjunction = true
            case .unary(_, let op): if op.isInequality { negations += 1 }
            case .field: break
            }
        }
        walk(filter)
        if negations > 1 {
            throw .invalidArgument(
                "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query.")
        }
        if hasNotIn, hasDisjunction {
            throw .invalidArgument(
                "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'.")
        }
    }

    private static func checkComponents(
        _ query: Query, disjunction: [NormalizedQuery.Conjunction]
    ) throws(Status) {
        let filters = disjunction.reduce(0) { $0 + $1.count }
        let ancestor = query.parent.path.isRoot ? 0 : 1
        if filters + query.orders.count + ancestor > Limits.queryComponentsMax {
            throw tooManyComponents(query, filters)
        }
    }

    private static func checkCursors(_ query: Query) throws(Status) {
        for (value, order) in zip(query.start?.values ?? [], query.orders) where !order.field.isDocumentName {
            try ValueValidation.validateOperand(value)
        }
        for (value, order) in zip(query.end?.values ?? [], query.orders) where !order.field.isDocumentName {
            try ValueValidation.validateOperand(value)
        }
    }

    static func tooManyComponents(_ query: Query, _ filters: Int) -> Status {
        .invalidArgument(
            "The query may not have more than \(Limits.queryComponentsMax) filters + sort orders + ancestor total. "
                + "Currently there are \(filters) filters, \(query.orders.count) sort orders, and "
                + "\(query.parent.path.isRoot ? "no" : "1") ancestor filter.")
    }

    private static func checkOrders(_ orders: [Query.Order], inequalities: Set<FieldPath>) throws(Status) {
        var seen: Set<FieldPath> = []
        for (index, order) in orders.enumerated() {
            if !seen.insert(order.field).inserted {
                throw .invalidArgument("order by clause cannot contain duplicate fields \(order.field)")
            }
            if order.field.isDocumentName, index < orders.count - 1 {
                throw .invalidArgument("order by clause cannot contain more fields after the key")
            }
        }
        // The implied orders would come after the name.
        if orders.last?.field.isDocumentName ?? false,
            inequalities.contains(where: { field in !field.isDocumentName && !orders.contains { $0.field == field } })
        {
            throw .invalidArgument("order by clause cannot contain more fields after the key")
        }
    }

    private static func checkKindless(_ query: Query) throws(Status) {
        switch query.scope {
        case .collection, .collectionGroup: return
        case .anyCollection, .allDescendants: break
        }
        func walk(_ filter: Filter) throws(Status) {
            switch filter {
            case .and(let filters), .or(let filters):
                for filter in filters { try walk(filter) }
            case .field(let path, _, _), .unary(let path, _):
                if !path.isDocumentName { throw .invalidArgument("kind is required for filter: \(path)") }
            }
        }
        if let filter = query.filter { try walk(filter) }
        if query.orders.contains(where: { !$0.field.isDocumentName }) {
            throw .invalidArgument("kind is required for all orders except __key__ ascending")
        }
    }

    private static func checkNameEquality(_ filter: Filter?, inequalities: Set<FieldPath>) throws(Status) {
        guard let filter, !inequalities.isEmpty, !inequalities.contains(.documentName) else { return }
        func hasNameEquality(_ filter: Filter) -> Bool {
            switch filter {
            case .and(let filters), .or(let filters): filters.contains(where: hasNameEquality)
            case .field(let path, let op, _): path.isDocumentName && (op == .equal || op == .in)
            case .unary: false
            }
        }
        if hasNameEquality(filter) {
            throw .invalidArgument(
                "Equality on key is not allowed if there are other inequality fields and key does not appear in "
                    + "inequalities.")
        }
    }

    private static func checkFindNearest(_ query: Query) throws(Status) {
        guard query.findNearest != nil else { return }
        if query.offset > 0 { throw .invalidArgument("A query offset cannot be used with FindNearest") }
        if query.limit != nil { throw .invalidArgument("A query limit cannot be used with FindNearest") }
        if !(query.start?.values.isEmpty ?? true) || !(query.end?.values.isEmpty ?? true) {
            throw .invalidArgument("Cursor has too many values.")
        }
    }
}
