import HearthTree

/// A rule expression, checked and compiled: names are resolved, methods known, patterns are automata. Only the data and
/// the token are read during evaluation.
indirect enum TreeExpression: Sendable {
    case constant(TreeRuleValue)
    case auth
    case now
    /// The key that matches the wildcard with this number, counted from the root.
    case capture(Int)
    case root
    case data
    case newData
    case query(QueryMember)
    /// A member of `auth`, or of a value in it.
    case member(TreeExpression, String)
    case element(TreeExpression, TreeExpression)
    /// `length`: of a string, or a member of that name in `auth`.
    case length(TreeExpression)
    case not(TreeExpression)
    case negate(TreeExpression)
    case and([TreeExpression])
    case or([TreeExpression])
    case conditional(TreeExpression, TreeExpression, TreeExpression)
    case binary(TreeOperator, TreeExpression, TreeExpression)

    // Methods of snapshots.
    case child(TreeExpression, TreeExpression)
    case parent(TreeExpression)
    case hasChild(TreeExpression, TreeExpression)
    case hasAllChildren(TreeExpression, [TreeExpression])
    case property(SnapshotProperty, TreeExpression)

    // Methods of strings.
    case string(StringMethod, TreeExpression, [TreeExpression])
    case matches(TreeExpression, TreePattern)

    /// The properties and methods of a snapshot that have no arguments.
    enum SnapshotProperty: String, Sendable {
        case value = "val"
        case exists
        case hasChildren
        case priority = "getPriority"
        case isNumber
        case isString
        case isBoolean
    }

    enum StringMethod: String, Sendable {
        case contains
        case beginsWith
        case endsWith
        case replace
        case toLowerCase
        case toUpperCase
    }

    enum QueryMember: String, Sendable {
        case orderByKey
        case orderByValue
        case orderByPriority
        case orderByChild
        case startAt
        case endAt
        case equalTo
        case limitToFirst
        case limitToLast
    }
}

/// The value of an expression.
enum TreeRuleValue: Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    /// The value of `val()` for a node with children: only its existence is known.
    case children
    /// An object or an array in `auth`.
    case claims(JSONValue)
    indirect case snapshot(TreeSnapshot)

    init(_ claim: JSONValue?) {
        switch claim {
        case nil, .null: self = .null
        case .bool(let value): self = .bool(value)
        case .integer(let value): self = .number(Double(value))
        case .double(let value): self = .number(value)
        case .string(let value): self = .string(value)
        case .some(let claim): self = .claims(claim)
        }
    }

    /// Nil for an unresolved server value, which no tree contains.
    init?(_ scalar: Scalar) {
        switch scalar {
        case .bool(let value): self = .bool(value)
        case .integer(let value): self = .number(Double(value))
        case .double(let value): self = .number(value)
        case .string(let value): self = .string(value)
        case .deferred: return nil
        }
    }

    /// Without any conversion: only equal values of one kind are equal. Objects are equal to nothing.
    static func == (lhs: TreeRuleValue, rhs: TreeRuleValue) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }
}
