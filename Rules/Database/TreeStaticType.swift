/// The statically known type of an expression.
enum TreeStaticType {
    case number
    case string
    case bool
    case null
    case snapshot
    /// `auth` and all values in it: any member is possible.
    case claim
    /// The result of `val()`, `getPriority()` and some members of `query`: a number, a string, true, false or null.
    case value
    case query
    case pattern
    case array
    /// A method that is not called.
    case function
    /// One of several unrelated types.
    case mixed

    /// The type of a conditional expression with these branches.
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
    /// Whether the type is only known during evaluation.
    var isOpen: Bool { self == .claim || self == .value }
}
