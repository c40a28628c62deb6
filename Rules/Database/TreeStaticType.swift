/// What is known of an expression's value before it is evaluated.
enum TreeStaticType {
    case number
    case string
    case bool
    case null
    case snapshot
    /// `auth`, and whatever is in it: anything may be a member.
    case claim
    /// What `val()`, `getPriority()` and some members of `query` give: a number, a text, true, false or null.
    case value
    case query
    case pattern
    case array
    /// A method that isn't called.
    case function
    /// One of several that have nothing in common.
    case mixed

    /// Of a conditional expression with these branches.
    static func join(_ first: TreeStaticType, _ second: TreeStaticType) -> TreeStaticType {
        if first == second { return first }
        return first.isComparable && second.isComparable ? .value : .mixed
    }

    /// Whether it may be compared for equality.
    var isComparable: Bool {
        switch self {
        case .number, .string, .bool, .null, .claim, .value: true
        case .snapshot, .query, .pattern, .array, .function, .mixed: false
        }
    }

    var mayBeNumber: Bool { self == .number || isOpen }
    var mayBeString: Bool { self == .string || isOpen }
    /// Whether it is found out only when it is evaluated.
    var isOpen: Bool { self == .claim || self == .value }
}
