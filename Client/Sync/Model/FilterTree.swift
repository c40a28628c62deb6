import HearthModel

extension [Filter] {
    /// The fields under `<`, `<=`, `>`, `>=`, `!=` and `not-in`, at any depth.
    var inequalityFields: Set<FieldPath> {
        var fields: Set<FieldPath> = []
        for filter in self { filter.collectInequalityFields(into: &fields) }
        return fields
    }

    /// The same conjunction in normal form: no directly nested conjunction, no composite of one member, no unary
    /// filters. The server and the cache preserve this form.
    var flattened: [Filter] {
        flatMap { filter -> [Filter] in
            let simple = filter.simplified
            if case .and(let members) = simple { return members.flattened }
            return [simple]
        }
    }
}

extension Filter {
    fileprivate func collectInequalityFields(into fields: inout Set<FieldPath>) {
        switch self {
        case .and(let members), .or(let members):
            for member in members { member.collectInequalityFields(into: &fields) }
        case .field(let field, let op, _): if op.isInequality { fields.insert(field) }
        case .unary(let field, let op): if op.isInequality { fields.insert(field) }
        }
    }

    /// Composites of one member become that member; unary filters become comparisons with null and NaN.
    fileprivate var simplified: Filter {
        switch self {
        case .and(let members): members.count == 1 ? members[0].simplified : .and(members.map(\.simplified))
        case .or(let members): members.count == 1 ? members[0].simplified : .or(members.map(\.simplified))
        case .field: self
        case .unary(let field, .isNull): .field(field, .equal, .null)
        case .unary(let field, .isNaN): .field(field, .equal, .double(.nan))
        case .unary(let field, .isNotNull): .field(field, .notEqual, .null)
        case .unary(let field, .isNotNaN): .field(field, .notEqual, .double(.nan))
        }
    }

    /// The server's form: comparisons with null and NaN are unary.
    var forServer: Filter {
        switch self {
        case .and(let members): .and(members.map(\.forServer))
        case .or(let members): .or(members.map(\.forServer))
        case .field(let field, .equal, .null): .unary(field, .isNull)
        case .field(let field, .notEqual, .null): .unary(field, .isNotNull)
        case .field(let field, .equal, .double(let number)) where number.isNaN: .unary(field, .isNaN)
        case .field(let field, .notEqual, .double(let number)) where number.isNaN: .unary(field, .isNotNaN)
        case .field, .unary: self
        }
    }

    static func areEqual(_ lhs: [Filter], _ rhs: [Filter]) -> Bool {
        lhs.count == rhs.count && zip(lhs, rhs).allSatisfy { areEqual($0, $1) }
    }

    private static func areEqual(_ lhs: Filter, _ rhs: Filter) -> Bool {
        switch (lhs, rhs) {
        case (.and(let left), .and(let right)), (.or(let left), .or(let right)): areEqual(left, right)
        case (.field(let left, let leftOperator, let x), .field(let right, let rightOperator, let y)):
            leftOperator == rightOperator && left == right && StrictEquality.equal(x, y)
        case (.unary(let left, let leftOperator), .unary(let right, let rightOperator)):
            leftOperator == rightOperator && left == right
        default: false
        }
    }
}
