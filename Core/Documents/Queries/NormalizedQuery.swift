import HearthEngine
import HearthModel
import HearthWire

/// A checked query in the form in which it is planned and matched: disjunctive normal form, the completed order,
/// cursors as order-key bounds.
package struct NormalizedQuery: Sendable {
    /// A filter that can't be decomposed further; IN and ARRAY_CONTAINS_ANY have become alternatives.
    enum Predicate: Sendable {
        case field(FieldPath, Filter.Operator, Value)
        case unary(FieldPath, Filter.UnaryOperator)
        /// A filter on `__name__`: the path keys that it allows.
        case names(ValueRanges)

        /// The filtered field; nil for the name.
        var path: FieldPath? {
            switch self {
            case .field(let path, _, _), .unary(let path, _): path
            case .names: nil
            }
        }
    }

    /// Predicates that must all hold.
    typealias Conjunction = [Predicate]

    package private(set) var query: Query
    /// One of these must hold. A query without filter has one empty conjunction.
    let disjunction: [Conjunction]
    /// The completed order; its last field is `__name__`.
    let orders: [Query.Order]
    /// Bounds of order keys, lower inclusive and upper exclusive, from the cursors.
    private(set) var bounds: KeyRange

    /// The path key, without terminator, of the common ancestor of all documents in the scope: of the collection, or of
    /// the parent where the scope spans several. Names in order keys are relative to it.
    let namePrefix: [UInt8]

    /// The approximate memory of the query where a transaction relies on it: itself, its filter in normal form, and the
    /// values as keys by which its lock is found.
    var heldBytes: Int {
        var measure = ValueMeasure()
        measure.bytes = Self.bytesOfEach + bounds.lower.count + (bounds.upper?.count ?? 0) + 2 * namePrefix.count
        for cursor in [query.start, query.end] {
            for value in cursor?.values ?? [] { measure.add(value) }
        }
        for order in orders { measure.bytes += Self.bytes(of: order.field) }
        for predicate in disjunction.joined() {
            measure.bytes += Self.bytesOfPredicate + (predicate.path.map(Self.bytes) ?? 0)
            switch predicate {
            case .field(_, _, let value):
                let known = measure.bytes
                measure.add(value)
                measure.bytes += 2 * (measure.bytes - known)
            case .unary: break
            case .names(let ranges):
                measure.bytes += ranges.ranges.reduce(0) { $0 + $1.lower.count + ($1.upper?.count ?? 0) }
            }
        }
        return measure.bytes
    }

    private static func bytes(of path: FieldPath) -> Int {
        path.segments.reduce(0) { $0 + ValueMeasure.bytes(ofString: $1) }
    }

    private static let bytesOfEach = 2048
    private static let bytesOfPredicate = 384

    var parentPath: ResourcePath { query.parent.path }
    /// The direction of `__name__`, which ends every order.
    var nameDescending: Bool { orders[orders.count - 1].descending }

    /// Checks a query and completes it.
    /// - Parameter existing: further fields that results must have; in the order they follow those of inequalities.
    ///   Used by aggregations.
    /// - Throws: INVALID_ARGUMENT, with Google's wordings, in Google's order of checks.
    package init(_ query: Query, existing: [FieldPath] = []) throws(Status) {
        self.query = query
        if case .collection(let id) = query.scope {
            namePrefix = DocumentKey.encodeSegments(query.parent.path.appending(id))
        } else {
            namePrefix = DocumentKey.encodeSegments(query.parent.path)
        }
        var disjunction: [Conjunction] = [[]]
        if let filter = query.filter {
            try QueryRules.check(filter)
            disjunction = try Self.disjunctiveNormalForm(filter, query)
        }
        let inequalities = Self.inequalityFields(query.filter)
        try QueryRules.check(query, disjunction: disjunction, inequalities: inequalities)
        orders = Self.completeOrders(query.orders, implied: inequalities.sorted() + existing.sorted())
        self.disjunction = disjunction
        bounds = try Self.bounds(query, orders: orders, namePrefix: namePrefix)
    }

    // MARK: Normal form

    private static func disjunctiveNormalForm(_ filter: Filter, _ query: Query) throws(Status) -> [Conjunction] {
        let size = normalFormSize(filter)
        if size.conjunctions > Limits.disjunctionsMax {
            throw .invalidArgument(
                "Too many disjunctions after normalization. Result had \(size.conjunctions) disjunctions which is more "
                    + "than the maximum of \(Limits.disjunctionsMax)")
        }
        // Far more than allowed: fails before it is built. The exact figures come after earlier checks.
        if size.predicates > 100 * Limits.queryComponentsMax {
            throw QueryRules.tooManyComponents(query, size.predicates)
        }
        return try expand(filter, query)
    }

    /// How many conjunctions `expand` would return, and how many predicates in all, without building them; capped, so
    /// that nothing overflows.
    private static func normalFormSize(_ filter: Filter) -> (conjunctions: Int, predicates: Int) {
        let cap = 1_000_000
        switch filter {
        case .and(let filters):
            return filters.reduce((1, 0)) { product, next in
                let size = normalFormSize(next)
                return (
                    min(cap, product.0 * size.conjunctions),
                    min(cap, product.1 * size.conjunctions + product.0 * size.predicates)
                )
            }
        case .or(let filters):
            return filters.reduce((0, 0)) { sum, next in
                let size = normalFormSize(next)
                return (min(cap, sum.0 + size.conjunctions), min(cap, sum.1 + size.predicates))
            }
        case .field(_, .in, .array(let values)), .field(_, .arrayContainsAny, .array(let values)):
            return (values.count, values.count)
        case .field, .unary: return (1, 1)
        }
    }

    private static func expand(_ filter: Filter, _ query: Query) throws(Status) -> [Conjunction] {
        switch filter {
        case .and(let filters):
            var product: [Conjunction] = [[]]
            for next in filters {
                let alternatives = try expand(next, query)
                if alternatives.count == 1 {
                    for index in product.indices { product[index] += alternatives[0] }
                } else {
                    product = product.flatMap { left in alternatives.map { left + $0 } }
                }
            }
            return product
        case .or(let filters):
            var sum: [Conjunction] = []
            for next in filters { sum += try expand(next, query) }
            return sum
        case .field(let path, let op, let value):
            let alternative: Filter.Operator
            switch op {
            case .in: alternative = .equal
            case .arrayContainsAny: alternative = .arrayContains
            default: return [[try predicate(path, op, value, query)]]
            }
            guard case .array(let values) = value else { return [] }
            var alternatives: [Conjunction] = []
            for value in values { alternatives.append([try predicate(path, alternative, value, query)]) }
            return alternatives
        case .unary(let path, let op): return [[.unary(path, op)]]
        }
    }

    private static func predicate(
        _ path: FieldPath, _ op: Filter.Operator, _ value: Value, _ query: Query
    ) throws(Status) -> Predicate {
        path.isDocumentName ? .names(try nameRanges(op, value, query)) : .field(path, op, value)
    }

    /// The path keys that a filter on `__name__` allows. They aren't cut like values, so the ranges are exact.
    private static func nameRanges(
        _ op: Filter.Operator, _ operand: Value, _ query: Query
    ) throws(Status) -> ValueRanges {
        if case .array(let operands) = operand {
            var excluded: [ValueRanges] = []
            for operand in operands { excluded.append(try nameRanges(.equal, operand, query)) }
            return excluded.reduce(.names(from: [])) { $0.subtracting($1) }
        }
        guard case .reference(let name) = operand else { return .empty }
        let key = try pathKey(name, in: query)
        // Not the key with an additional byte: in descending form that would come before the key.
        let after = KeyRange.successor(ofPrefix: key) ?? [0xFF]
        return switch op {
        case .lessThan: .names(from: [], to: key)
        case .lessThanOrEqual: .names(from: [], to: after)
        case .greaterThan: .names(from: after)
        case .greaterThanOrEqual: .names(from: key)
        case .notEqual: ValueRanges.names(from: []).subtracting(.names(from: key, to: after))
        default: .names(from: key, to: after)
        }
    }

    // MARK: Order

    static func inequalityFields(_ filter: Filter?) -> Set<FieldPath> {
        switch filter {
        case nil: []
        case .and(let filters)?, .or(let filters)?: filters.reduce(into: []) { $0.formUnion(inequalityFields($1)) }
        case .field(let path, let op, _)?: op.isInequality ? [path] : []
        case .unary(let path, let op)?: op.isInequality ? [path] : []
        }
    }

    /// - Parameter implied: the fields of inequalities and aggregations.
    private static func completeOrders(_ explicit: [Query.Order], implied: [FieldPath]) -> [Query.Order] {
        // Nothing can come after the name; `QueryRules` has checked that nothing would have to.
        if explicit.last?.field.isDocumentName ?? false { return explicit }
        var orders = explicit
        let descending = explicit.last?.descending ?? false
        for field in implied where !field.isDocumentName && !orders.contains(where: { $0.field == field }) {
            orders.append(Query.Order(field: field, descending: descending))
        }
        orders.append(Query.Order(field: .documentName, descending: descending))
        return orders
    }

    // MARK: Cursors

    private static func bounds(
        _ query: Query, orders: [Query.Order], namePrefix: [UInt8]
    ) throws(Status) -> KeyRange {
        var bounds = KeyRange(lower: [], upper: nil)
        if let start = query.start {
            let prefix = try boundPrefix(start, query, orders: orders, namePrefix: namePrefix)
            if start.before {
                bounds.lower = prefix
            } else if let after = KeyRange.successor(ofPrefix: prefix) {
                bounds.lower = after
            } else {
                bounds = KeyRange(lower: [], upper: [])
            }
        }
        if let end = query.end {
            let prefix = try boundPrefix(end, query, orders: orders, namePrefix: namePrefix)
            let upper = end.before ? prefix : KeyRange.successor(ofPrefix: prefix)
            bounds.upper = ValueRanges.lesser(bounds.upper, upper)
        }
        return bounds
    }

    private static func boundPrefix(
        _ cursor: Query.Cursor, _ query: Query, orders: [Query.Order], namePrefix: [UInt8]
    ) throws(Status) -> [UInt8] {
        // Values for implied fields are too many, as in the service.
        if cursor.values.count > query.orders.count { throw .invalidArgument("Cursor has too many values.") }
        var bytes: [UInt8] = []
        for (value, order) in zip(cursor.values, orders) {
            if order.field.isDocumentName {
                guard case .reference(let string) = value else {
                    throw .invalidArgument("Cursor __key__ value is not a document reference.")
                }
                let name = relative(try pathKey(string, in: query), to: namePrefix)
                appendComponent(name, descending: order.descending, to: &bytes)
            } else {
                appendComponent(IndexValue.encode(value), descending: order.descending, to: &bytes)
            }
        }
        return bytes
    }

    static func appendComponent(_ component: [UInt8], descending: Bool, to bytes: inout [UInt8]) {
        if descending {
            for byte in component { bytes.append(~byte) }
        } else {
            bytes.append(contentsOf: component)
        }
    }

    /// The path key of a reference that is a position in the order of names. Its document need not exist.
    private static func pathKey(_ string: String, in query: Query) throws(Status) -> [UInt8] {
        let name = try ResourceName(reference: string, in: query.parent.database)
        return DocumentKey.encodePath(name.path)
    }

    /// A path key as a position among names relative to a prefix; keys outside come before or after all of them.
    static func relative(_ pathKey: [UInt8], to prefix: [UInt8]) -> [UInt8] {
        if pathKey.starts(with: prefix) { return Array(pathKey.dropFirst(prefix.count)) }
        return UTF8Order.compare(pathKey, prefix) < 0 ? [0x00] : [0xFF]
    }

    // MARK: Order keys

    /// A document's name as it appears in order keys.
    func relativeName(key: [UInt8]) -> [UInt8] {
        if case .collection = query.scope {
            // The collection's prefix and its terminator begin the key.
            return Array(key.dropFirst(namePrefix.count + 1))
        }
        return Array((DocumentKey.toPathKey(key) ?? key).dropFirst(namePrefix.count))
    }

    /// The key that orders a document in this query's results; nil when it lacks a field of the order.
    func orderKey(fields: [UInt8], key: [UInt8]) throws(Status) -> [UInt8]? {
        try orderKey(FieldsReader(fields), key: key)
    }

    func orderKey(_ fields: some FieldSource, key: [UInt8]) throws(Status) -> [UInt8]? {
        var bytes: [UInt8] = []
        for order in orders {
            if order.field.isDocumentName {
                Self.appendComponent(relativeName(key: key), descending: order.descending, to: &bytes)
            } else {
                guard let value = try fields.value(at: order.field) else { return nil }
                Self.appendComponent(IndexValue.encode(value), descending: order.descending, to: &bytes)
            }
        }
        return bytes
    }

    /// The rest of this query's results, after a document that was its last so far.
    /// - Parameters:
    ///   - remaining: the rest of the limit.
    ///   - offset: the rest of the results to skip.
    package func continued(after result: QueryResult, remaining: Int?, offset: Int) throws(Status) -> NormalizedQuery {
        guard let last = try orderKey(fields: result.document.fields, key: result.key) else { return self }
        return continued(after: last, remaining: remaining, offset: offset)
    }

    package func continued(after orderKey: [UInt8], remaining: Int?, offset: Int) -> NormalizedQuery {
        var rest = self
        rest.query.limit = remaining
        rest.query.offset = offset
        // Complete order keys are not prefixes of others, so nothing else lies before the successor.
        rest.bounds.lower = KeyRange.successor(ofPrefix: orderKey) ?? orderKey
        return rest
    }

    /// The same query from its first result on, up to another limit.
    package func fromFirst(limit: Int?) -> NormalizedQuery {
        var other = self
        other.query.limit = limit
        other.query.offset = 0
        return other
    }

    /// The position of a result in this query's order; can be passed to `continued` later.
    package func position(of result: QueryResult) throws(Status) -> [UInt8] {
        try orderKey(fields: result.document.fields, key: result.key) ?? []
    }

    func isWithinBounds(_ orderKey: [UInt8]) -> Bool {
        UTF8Order.compare(orderKey, bounds.lower) >= 0
            && (bounds.upper.map { UTF8Order.compare(orderKey, $0) < 0 } ?? true)
    }

    var hasBounds: Bool { !bounds.lower.isEmpty || bounds.upper != nil }
}
