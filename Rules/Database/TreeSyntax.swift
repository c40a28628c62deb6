/// A parsed expression of the Realtime Database's rules.
struct TreeSyntax {
    indirect enum Kind {
        case number(Double)
        case string(String)
        case bool(Bool)
        case null
        /// The source between the slashes, and the flags after them.
        case pattern(String, flags: String)
        case array([TreeSyntax])
        /// A variable; with its dollar sign if it has one.
        case name(String)
        /// `a.b`, or `a['b']`.
        case member(TreeSyntax, String)
        /// `a[b]`, where b is not a string literal.
        case element(TreeSyntax, TreeSyntax)
        case call(TreeSyntax, [TreeSyntax])
        case not(TreeSyntax)
        case negate(TreeSyntax)
        case binary(TreeOperator, TreeSyntax, TreeSyntax)
        /// Two or more operands of one chain of `&&` (`isAnd`) or `||`.
        case logical(isAnd: Bool, [TreeSyntax])
        case conditional(TreeSyntax, TreeSyntax, TreeSyntax)
    }

    let kind: Kind
    /// The offset of its first byte in the expression.
    let offset: Int
    /// The depth of its tree.
    let depth: Int

    init(_ kind: Kind, at offset: Int, above operands: [TreeSyntax] = []) throws(TreeSyntaxError) {
        self.kind = kind
        self.offset = offset
        var deepest = 0
        for operand in operands { deepest = max(deepest, operand.depth) }
        depth = deepest + 1
        if depth > TreeRulesLimits.expressionDepthMax { throw Self.tooDeep(at: offset) }
    }

    static func tooDeep(at offset: Int) -> TreeSyntaxError {
        TreeSyntaxError("Rule expression is nested too deeply.", at: offset)
    }
}

/// A binary operator that always evaluates both operands. `===` is `==`: nothing is converted.
enum TreeOperator: String {
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case add = "+"
    case subtract = "-"
    case multiply = "*"
    case divide = "/"
    case remainder = "%"

    /// A greater number binds tighter; `||` and `&&` are 1 and 2.
    var precedence: Int {
        switch self {
        case .equal, .notEqual: 3
        case .less, .lessOrEqual, .greater, .greaterOrEqual: 4
        case .add, .subtract: 5
        case .multiply, .divide, .remainder: 6
        }
    }
}
