import HearthModel

@testable import HearthDocuments

/// Random queries over a random database. Some break rules of shape and fail; most don't.
extension RandomDatabase {
    mutating func randomQuery() -> Query {
        let parent = randomParent()
        var query = Query(parent: ResourceName(database: testDatabaseName, path: parent), scope: randomScope())
        let isKindless =
            switch query.scope {
            case .anyCollection, .allDescendants: true
            default: false
            }
        if !isKindless, random.chance(15) {
            query.filter = randomEqualities()
        } else if random.chance(65) {
            var budget = FilterBudget(isKindless: isKindless)
            query.filter = randomFilter(depth: random.pick([0, 0, 1, 1, 2, 3]), &budget)
        }
        if !isKindless {
            for _ in 0..<random.pick([0, 0, 1, 1, 2, 3]) {
                let field = random.pick(Self.fields)
                if query.orders.contains(where: { $0.field == field }) { continue }
                query.orders.append(Query.Order(field: field, descending: random.chance(50)))
            }
        }
        if random.chance(25) {
            query.orders.append(Query.Order(field: .documentName, descending: random.chance(50)))
        }
        if random.chance(25) { query.start = randomCursor(query) }
        if random.chance(25) { query.end = randomCursor(query) }
        if random.chance(20) { query.offset = random.below(6) }
        if random.chance(30) { query.limit = random.below(8) }
        return query
    }

    private mutating func randomParent() -> ResourcePath {
        if random.chance(75) { return ResourcePath() }
        let path = random.pick(paths)
        // Mostly one that has descendants.
        return random.chance(30) ? path : ResourcePath(Array(path.segments.dropLast(2)))
    }

    private mutating func randomScope() -> Query.Scope {
        let id = random.chance(80) ? "c" : random.pick(Self.collections)
        return switch random.below(20) {
        case 0: .anyCollection
        case 1: .allDescendants
        case 2...7: .collectionGroup(id)
        default: .collection(id)
        }
    }

    // MARK: Filters

    private mutating func randomOperand() -> Value { operands.isEmpty ? .integer(1) : random.pick(operands) }
    private mutating func randomScalarOperand() -> Value {
        scalarOperands.isEmpty ? .integer(1) : random.pick(scalarOperands)
    }

    /// The remaining budget of a filter, so that few queries fail.
    struct FilterBudget {
        var isKindless: Bool
        var negations = 1
        var memberships = 1
        var disjunctions = 12
        var hasDisjunction = false
    }

    private mutating func randomFilter(depth: Int, _ budget: inout FilterBudget) -> Filter {
        if depth > 0, random.chance(70) {
            let isOr = random.chance(35) && budget.disjunctions > 2
            if isOr {
                budget.hasDisjunction = true
                budget.disjunctions /= 2
            }
            let memberships = budget.memberships
            let count = random.pick([1, 2, 2, 2, 3])
            let filters = (0..<count).map { _ in
                if isOr { budget.memberships = memberships }
                return randomFilter(depth: depth - 1, &budget)
            }
            return isOr ? .or(filters) : .and(filters)
        }
        if budget.isKindless || random.chance(12) { return randomNameFilter(&budget) }
        return random.chance(15) ? randomUnary(&budget) : randomFieldFilter(&budget)
    }

    /// Several equalities, as merges of indexes serve them.
    private mutating func randomEqualities() -> Filter {
        var filters = Self.fields.shuffled(using: &random).prefix(2 + random.below(2)).map { path in
            Filter.field(path, .equal, randomOperand())
        }
        if random.chance(40) { filters.append(.field(FieldPath("t"), .arrayContains, randomScalarOperand())) }
        return .and(filters)
    }

    private mutating func randomUnary(_ budget: inout FilterBudget) -> Filter {
        var op = random.pick(Filter.UnaryOperator.allCases)
        if op.isInequality {
            if budget.negations == 0 { op = .isNull } else { budget.negations -= 1 }
        }
        return .unary(random.pick(Self.fields), op)
    }

    private mutating func randomFieldFilter(_ budget: inout FilterBudget) -> Filter {
        let path = random.pick(random.chance(60) ? Self.fields[..<4] : Self.fields[...])
        var op = random.chance(35) ? .equal : random.pick(Filter.Operator.allCases)
        switch op {
        case .notEqual, .notIn:
            if budget.negations == 0 || (op == .notIn && budget.hasDisjunction) {
                op = .equal
            } else {
                budget.negations -= 1
                if op == .notIn { budget.disjunctions = 0 }
            }
        case .in where budget.disjunctions < 2: op = .equal
        case .arrayContainsAny where budget.disjunctions < 2: op = .arrayContains
        default: break
        }
        if op == .arrayContains || op == .arrayContainsAny {
            if budget.memberships == 0 { op = .greaterThanOrEqual } else { budget.memberships -= 1 }
        }
        let isArrayFilter = op == .arrayContains || op == .arrayContainsAny
        let target = isArrayFilter && random.chance(80) ? FieldPath("t") : path
        switch op {
        case .in, .arrayContainsAny:
            let count = 1 + random.below(min(4, max(1, budget.disjunctions)))
            budget.disjunctions /= count
            budget.hasDisjunction = true
            return .field(target, op, .array((0..<count).map { _ in randomOperand() }))
        case .notIn: return .field(target, op, .array((0..<(1 + random.below(3))).map { _ in randomOperand() }))
        default: return .field(target, op, isArrayFilter ? randomScalarOperand() : randomOperand())
        }
    }

    private mutating func randomNameFilter(_ budget: inout FilterBudget) -> Filter {
        var ops: [Filter.Operator] = [
            .equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .greaterThan, .lessThan,
        ]
        if budget.disjunctions > 2 { ops.append(.in) }
        if budget.negations > 0 { ops += budget.hasDisjunction ? [.notEqual] : [.notEqual, .notIn] }
        let op = random.pick(ops)
        switch op {
        case .in:
            budget.hasDisjunction = true
            budget.disjunctions /= 3
            return .field(.documentName, op, .array((0..<3).map { _ in randomReference() }))
        case .notIn:
            budget.negations -= 1
            budget.disjunctions = 0
            return .field(.documentName, op, .array((0..<2).map { _ in randomReference() }))
        case .notEqual:
            budget.negations -= 1
            return .field(.documentName, op, randomReference())
        default: return .field(.documentName, op, randomReference())
        }
    }

    /// A name near the documents' names: one of them, its parent's, one with the same start, or one far away.
    mutating func randomReference() -> Value {
        var segments = random.pick(paths).segments
        switch random.below(12) {
        case 0: segments = Array(segments.prefix(2))
        case 1: segments[segments.count - 1] += "\u{0}"
        case 2: segments += ["c", "1"]
        case 3: segments[segments.count - 2] += "\u{0}"
        case 4: segments[segments.count - 1] = "__id-9223372036854775808__"
        case 5: segments = ["\u{0}", "\u{0}"]
        case 6: segments = ["~", "~"]
        default: break
        }
        return .reference(ResourceName(database: testDatabaseName, path: ResourcePath(segments)).string)
    }

    // MARK: Cursors

    private mutating func randomCursor(_ query: Query) -> Query.Cursor {
        let orders = query.orders
        let count = random.below(orders.count + 1)
        // Mostly the position of a document, so that bounds are hit exactly.
        let document = random.chance(70) && !state.isEmpty ? state[random.pick(paths)] : nil
        let values = orders.prefix(count).map { order -> Value in
            if order.field.isDocumentName {
                return document.map { .reference($0.name) } ?? randomReference()
            }
            return document?.value(at: order.field) ?? random.pick(palette)
        }
        return Query.Cursor(values: values, before: random.chance(50))
    }
}

// MARK: Showing queries

extension Query {
    /// The query in a short form, for messages.
    var summary: String {
        var parts = ["\(scope) below '\(parent.path)'"]
        if let filter { parts.append("where \(filter.summary)") }
        if !orders.isEmpty {
            parts.append(
                "order by " + orders.map { "\($0.field)\($0.descending ? " desc" : "")" }.joined(separator: ", "))
        }
        if let start { parts.append("start \(start.before ? "at" : "after") \(start.values.map(\.summary))") }
        if let end { parts.append("end \(end.before ? "before" : "at") \(end.values.map(\.summary))") }
        if offset > 0 { parts.append("offset \(offset)") }
        if let limit { parts.append("limit \(limit)") }
        return parts.joined(separator: " ")
    }
}

extension Filter {
    var summary: String {
        switch self {
        case .and(let filters): "AND(" + filters.map(\.summary).joined(separator: ", ") + ")"
        case .or(let filters): "OR(" + filters.map(\.summary).joined(separator: ", ") + ")"
        case .field(let path, let op, let value): "\(path) \(op.name) \(value.summary)"
        case .unary(let path, let op): "\(path) \(op.name)"
        }
    }
}

extension Value {
    /// A short string; long ones are cut.
    var summary: String {
        let string =
            switch self {
            case .null: "null"
            case .boolean(let flag): "\(flag)"
            case .integer(let number): "\(number)"
            case .double(let number): "\(number)d"
            case .timestamp(let time): "time(\(time.microseconds))"
            case .string(let string):
                string.utf8.count > 40 ? "\"…\(string.suffix(5))\"(\(string.utf8.count))" : "\(string.debugDescription)"
            case .bytes(let bytes): bytes.count > 20 ? "bytes(\(bytes.count))" : "bytes\(bytes)"
            case .reference(let name):
                "ref(\(name.count > 200 ? "…" : name.split(separator: "/").dropFirst(4).joined(separator: "/")))"
            case .geoPoint(let point): "geo(\(point.latitude), \(point.longitude))"
            case .array(let values): "[" + values.map(\.summary).joined(separator: ", ") + "]"
            case .vector(let elements): "vector\(elements)"
            case .map(let map): "{" + map.fields.map { "\($0.name): \($0.value.summary)" }.joined(separator: ", ") + "}"
            }
        return string.count > 300 ? string.prefix(150) + "…" + string.suffix(140) : string
    }
}
