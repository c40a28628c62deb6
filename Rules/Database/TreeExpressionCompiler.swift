import HearthTree

/// Checks an expression and compiles it. The first error ends it, as in the service; the messages are the service's.
struct TreeExpressionCompiler {
    enum Kind: String {
        case read = ".read"
        case write = ".write"
        case validate = ".validate"
    }

    let kind: Kind
    /// The wildcards above and at the rule's node, from the root, with their dollar signs.
    let wildcards: [String]
    /// Patterns of the document that are already compiled.
    var patterns: TreePatternTable

    typealias Typed = (expression: TreeExpression, type: TreeStaticType)

    mutating func rule(_ syntax: TreeSyntax) throws(TreeSyntaxError) -> TreeExpression {
        let (expression, type) = try compile(syntax)
        guard type == .bool else {
            throw TreeSyntaxError("Expression must evaluate to a boolean.", at: syntax.offset)
        }
        return expression
    }

    mutating func compile(_ syntax: TreeSyntax) throws(TreeSyntaxError) -> Typed {
        switch syntax.kind {
        case .number(let value): return (.constant(.number(value)), .number)
        case .string(let value): return (.constant(.string(value)), .string)
        case .bool(let value): return (.constant(.bool(value)), .bool)
        case .null: return (.constant(.null), .null)
        // Only methods take these, and they read the syntax tree.
        case .pattern: return (.constant(.null), .pattern)
        case .array(let items):
            for item in items { _ = try compile(item) }
            return (.constant(.null), .array)
        case .name(let name): return try variable(name, at: syntax.offset)
        case .member(let target, let name): return try member(target, name, at: syntax.offset, isCalled: false)
        case .element(let target, let index): return try element(target, index)
        case .call(let target, let arguments): return try call(target, arguments, at: syntax.offset)
        case .not(let operand):
            let (expression, type) = try compile(operand)
            guard type == .bool else { throw TreeSyntaxError("! only operates on booleans.", at: operand.offset) }
            return (.not(expression), .bool)
        case .negate(let operand):
            let (expression, type) = try compile(operand)
            guard type.mayBeNumber else { throw TreeSyntaxError("- only operates on numbers.", at: operand.offset) }
            return (.negate(expression), .number)
        case .logical(let isAnd, let operands): return try logical(isAnd, operands)
        case .conditional(let condition, let first, let second):
            let (test, type) = try compile(condition)
            guard type == .bool else {
                throw TreeSyntaxError("condition of ? must be boolean.", at: condition.offset)
            }
            let left = try compile(first)
            let right = try compile(second)
            return (
                .conditional(test, left.expression, right.expression), TreeStaticType.join(left.type, right.type)
            )
        case .binary(let known, let first, let second): return try binary(known, first, second)
        }
    }

    // MARK: Variables

    private func variable(_ name: String, at offset: Int) throws(TreeSyntaxError) -> Typed {
        switch name {
        case "auth": return (.auth, .claim)
        case "now": return (.now, .number)
        case "root": return (.root, .snapshot)
        case "data": return (.data, .snapshot)
        case "newData":
            guard kind != .read else {
                throw TreeSyntaxError("newData is invalid in .read expressions.", at: offset)
            }
            return (.newData, .snapshot)
        // Its members are compiled where they are named.
        case "query" where kind == .read: return (.constant(.null), .query)
        default:
            // Two Unicode spellings of one character are two names.
            guard let index = wildcards.firstIndex(where: { TreeKey($0) == TreeKey(name) }) else {
                throw TreeSyntaxError("Unknown variable '\(name)'.", at: offset)
            }
            return (.capture(index), .string)
        }
    }

    // MARK: Operators

    private mutating func logical(_ isAnd: Bool, _ operands: [TreeSyntax]) throws(TreeSyntaxError) -> Typed {
        var compiled: [TreeExpression] = []
        for (index, operand) in operands.enumerated() {
            let (expression, type) = try compile(operand)
            guard type == .bool else {
                let side = index == 0 ? "Left" : "Right"
                throw TreeSyntaxError(
                    "\(side) operand of \(isAnd ? "&&" : "||") must be boolean.", at: operand.offset)
            }
            compiled.append(expression)
        }
        return (isAnd ? .and(compiled) : .or(compiled), .bool)
    }

    private mutating func binary(
        _ known: TreeOperator, _ first: TreeSyntax, _ second: TreeSyntax
    ) throws(TreeSyntaxError) -> Typed {
        let left = try compile(first)
        let right = try compile(second)
        func check(_ allows: (TreeStaticType) -> Bool, _ wanted: (_ isLeft: Bool) -> String) throws(TreeSyntaxError) {
            for (operand, type, isLeft) in [(first, left.type, true), (second, right.type, false)] where !allows(type) {
                throw TreeSyntaxError(
                    "Invalid \(known.rawValue) expression: \(isLeft ? "left" : "right") operand \(wanted(isLeft)).",
                    at: operand.offset)
            }
        }
        let compiled = TreeExpression.binary(known, left.expression, right.expression)
        switch known {
        case .equal, .notEqual:
            try check(\.isComparable) { isLeft in
                // One of the service's messages lacks a word.
                known == .equal && isLeft
                    ? "is not a number, boolean, string, null" : "is not a number, boolean, string, or null"
            }
            return (compiled, .bool)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            try check({ $0.mayBeNumber || $0.mayBeString }) { _ in "must be a number or string" }
            return (compiled, .bool)
        case .add:
            try check({ $0.mayBeNumber || $0.mayBeString }) { _ in "is not a number or string" }
            if left.type == .string || right.type == .string { return (compiled, .string) }
            return (compiled, left.type == .number && right.type == .number ? .number : .value)
        case .subtract, .multiply, .divide, .remainder:
            try check(\.mayBeNumber) { _ in "is not a number" }
            return (compiled, .number)
        }
    }
}

/// The regular expressions of a document, each compiled once.
struct TreePatternTable {
    private struct Key: Hashable {
        var pattern: TreeKey
        var flags: TreeKey
    }

    private var compiled: [Key: TreePattern] = [:]

    mutating func pattern(_ pattern: String, flags: String, at offset: Int) throws(TreeSyntaxError) -> TreePattern {
        let key = Key(pattern: TreeKey(pattern), flags: TreeKey(flags))
        if let known = compiled[key] { return known }
        if compiled.count >= TreeRulesLimits.patternsMax {
            throw TreeSyntaxError(
                "Too many regular expressions: at most \(TreeRulesLimits.patternsMax) different ones.", at: offset)
        }
        let new = try TreePattern(pattern, flags: flags, at: offset + 1)
        compiled[key] = new
        return new
    }
}
