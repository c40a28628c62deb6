import HearthModel

/// A database as a plain list of documents, with all its states: the reference for the real one.
///
/// It uses none of the code under test except the order of values, which has tests of its own.
struct NaiveDocument: Equatable {
    var path: ResourcePath
    var fields: MapValue
    var createTime: Int64
    var updateTime: Int64

    var name: String { ResourceName(database: testDatabaseName, path: path).string }
    var collectionID: String { path.segments[path.segments.count - 2] }

    func value(at field: FieldPath) -> Value? {
        var value = Value.map(fields)
        for segment in field.segments {
            guard case .map(let map) = value,
                let member = map.fields.first(where: { Array($0.name.utf8) == Array(segment.utf8) })
            else { return nil }
            value = member.value
        }
        return value
    }
}

typealias NaiveState = [ResourcePath: NaiveDocument]

/// Answers queries by a walk over every document.
struct NaiveQuery {
    let query: Query
    /// Explicit and implied orders, `__name__` last.
    let orders: [Query.Order]

    /// - Parameter existing: the fields of aggregations.
    init(_ query: Query, existing: [FieldPath] = []) {
        self.query = query
        var orders = query.orders
        let descending = query.orders.last?.descending ?? false
        let endsByName = query.orders.last?.field.isDocumentName ?? false
        let implied = Self.inequalityFields(query.filter).sorted() + existing.sorted()
        for field in implied where !field.isDocumentName && !orders.contains(where: { $0.field == field }) {
            if !endsByName { orders.append(Query.Order(field: field, descending: descending)) }
        }
        if !endsByName { orders.append(Query.Order(field: .documentName, descending: descending)) }
        self.orders = orders
    }

    private static func inequalityFields(_ filter: Filter?) -> [FieldPath] {
        switch filter {
        case nil: []
        case .and(let filters)?, .or(let filters)?: filters.flatMap { inequalityFields($0) }
        case .field(let path, let op, _)?: [.equal, .in, .arrayContains, .arrayContainsAny].contains(op) ? [] : [path]
        case .unary(let path, let op)?: [.isNull, .isNaN].contains(op) ? [] : [path]
        }
    }

    // MARK: Results

    /// The results in order, offset and limit applied.
    func results(in state: NaiveState) -> [NaiveDocument] {
        let all = matches(in: state)
        return Array(all.dropFirst(query.offset).prefix(query.limit ?? .max))
    }

    /// The results in order, before offset and limit.
    func matches(in state: NaiveState) -> [NaiveDocument] {
        state.values.filter { document in
            isInScope(document.path)
                && orders.allSatisfy { $0.field.isDocumentName || document.value(at: $0.field) != nil }
                && (query.filter.map { matches($0, document) } ?? true) && isWithinCursors(document)
        }.sorted { compare($0, $1) < 0 }
    }

    private func isInScope(_ path: ResourcePath) -> Bool {
        let parent = query.parent.path.segments
        guard path.segments.count > parent.count, path.segments.starts(with: parent, by: same) else { return false }
        let isDirect = path.segments.count == parent.count + 2
        let collectionID = path.segments[path.segments.count - 2]
        return switch query.scope {
        case .collection(let id): isDirect && same(id, collectionID)
        case .collectionGroup(let id): same(id, collectionID)
        case .anyCollection: isDirect
        case .allDescendants: true
        }
    }

    private func same(_ lhs: String, _ rhs: String) -> Bool { lhs.utf8.elementsEqual(rhs.utf8) }

    // MARK: Order

    private func compare(_ lhs: NaiveDocument, _ rhs: NaiveDocument) -> Int {
        for order in orders {
            let result = compare(position(of: lhs, order), position(of: rhs, order), order)
            if result != 0 { return result }
        }
        return 0
    }

    private func position(of document: NaiveDocument, _ order: Query.Order) -> Value {
        order.field.isDocumentName ? .reference(document.name) : document.value(at: order.field) ?? .null
    }

    private func compare(_ lhs: Value, _ rhs: Value, _ order: Query.Order) -> Int {
        let result = ValueOrder.compare(lhs, rhs)
        return order.descending ? -result : result
    }

    private func isWithinCursors(_ document: NaiveDocument) -> Bool {
        if let start = query.start {
            let order = compare(document, start)
            if order < 0 || (order == 0 && !start.before) { return false }
        }
        if let end = query.end {
            let order = compare(document, end)
            if order > 0 || (order == 0 && end.before) { return false }
        }
        return true
    }

    private func compare(_ document: NaiveDocument, _ cursor: Query.Cursor) -> Int {
        for (value, order) in zip(cursor.values, orders) {
            let result = compare(position(of: document, order), value, order)
            if result != 0 { return result }
        }
        return 0
    }

    // MARK: Filters

    private func matches(_ filter: Filter, _ document: NaiveDocument) -> Bool {
        switch filter {
        case .and(let filters): return filters.allSatisfy { matches($0, document) }
        case .or(let filters): return filters.contains { matches($0, document) }
        case .unary(let path, let op):
            guard let value = document.value(at: path) else { return false }
            return switch op {
            case .isNull: value == .null
            case .isNotNull: value != .null
            case .isNaN: isNaN(value)
            case .isNotNaN: value != .null && !isNaN(value)
            }
        case .field(let path, let op, let operand):
            let value = path.isDocumentName ? .reference(document.name) : document.value(at: path)
            return value.map { matches($0, op, operand) } ?? false
        }
    }

    private func matches(_ value: Value, _ op: Filter.Operator, _ operand: Value) -> Bool {
        let order = ValueOrder.compare(value, operand)
        let isComparable = operand != .null && !isNaN(operand)
        let isSameClass = ValueOrder.typeClass(of: value) == ValueOrder.typeClass(of: operand)
        switch op {
        case .equal: return isComparable && order == 0
        case .notEqual: return value != .null && operand != .null && order != 0
        case .lessThan: return isComparable && isSameClass && order < 0
        case .lessThanOrEqual: return isComparable && isSameClass && order <= 0
        case .greaterThan: return isComparable && isSameClass && order > 0
        case .greaterThanOrEqual: return isComparable && isSameClass && order >= 0
        case .in: return elements(operand).contains { matches(value, .equal, $0) }
        case .notIn:
            return value != .null && !elements(operand).contains { $0 == .null || ValueOrder.compare(value, $0) == 0 }
        case .arrayContains:
            guard case .array(let members) = value else { return false }
            return isComparable && members.contains { ValueOrder.compare($0, operand) == 0 }
        case .arrayContainsAny: return elements(operand).contains { matches(value, .arrayContains, $0) }
        }
    }

    private func elements(_ operand: Value) -> [Value] {
        if case .array(let elements) = operand { elements } else { [] }
    }

    private func isNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { false }
    }
}

// MARK: Aggregations

extension NaiveQuery {
    /// An aggregation over documents.
    static func aggregate(_ op: Aggregation.Operator, over documents: [NaiveDocument]) -> Value {
        switch op {
        case .count(let upTo): return .integer(min(Int64(documents.count), upTo ?? .max))
        case .sum(let path): return sum(documents.compactMap { $0.value(at: path) }).total
        case .average(let path):
            let (total, exact, count) = sum(documents.compactMap { $0.value(at: path) })
            if count == 0 { return .null }
            if case .double(let number) = total { return .double(number / Double(count)) }
            return .double(Double(exact) / Double(count))
        }
    }

    private static func sum(_ values: [Value]) -> (total: Value, exact: Int128, count: Int) {
        var integers: Int128 = 0
        var doubles: [Double] = []
        var count = 0
        for value in values {
            switch value {
            case .integer(let number): integers += Int128(number)
            case .double(let number): doubles.append(number)
            default: continue
            }
            count += 1
        }
        if doubles.isEmpty {
            if let fitting = Int64(exactly: integers) { return (.integer(fitting), integers, count) }
            return (.double(Double(integers)), integers, count)
        }
        // In the order of magnitude, the small ones first: the order of addition is not defined.
        let total = doubles.sorted { abs($0) < abs($1) }.reduce(Double(integers), +)
        return (.double(total), integers, count)
    }
}

// MARK: Changes

extension NaiveState {
    /// Sets or deletes documents as one commit at a version would.
    mutating func apply(_ changes: [(path: ResourcePath, fields: MapValue?)], version: Int64) {
        for (path, fields) in changes {
            guard let fields else {
                self[path] = nil
                continue
            }
            if let present = self[path], present.fields == fields { continue }
            self[path] = NaiveDocument(
                path: path, fields: fields, createTime: self[path]?.createTime ?? version, updateTime: version)
        }
    }
}
