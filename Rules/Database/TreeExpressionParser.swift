/// Parses one rule expression. The operators from high to low precedence: `!` and unary `-`, `* / %`, `+ -`, ordering,
/// equality, `&&`, `||` and `?:`. All but the last associate to the left.
struct TreeExpressionParser {
    private var lexer: TreeLexer
    private var token: TreeLexer.Token = .end
    private var offset = 0
    private var nesting = 0

    /// - Parameter source: valid UTF-8.
    static func parse(_ source: [UInt8]) throws(TreeSyntaxError) -> TreeSyntax {
        var parser = TreeExpressionParser(lexer: TreeLexer(source))
        try parser.advance()
        let expression = try parser.expression()
        guard parser.token == .end else { throw parser.unexpected("an operator or the end") }
        return expression
    }

    private init(lexer: TreeLexer) {
        self.lexer = lexer
    }

    private mutating func advance() throws(TreeSyntaxError) {
        (token, offset) = try lexer.next()
        if token == .assignment {
            throw TreeSyntaxError("Rule expressions may not contain assignments.", at: offset)
        }
    }

    private func unexpected(_ wanted: String) -> TreeSyntaxError {
        let found =
            switch token {
            case .number(let number): Decimal.javaScript(number)
            case .string: "a string"
            case .name(let name): "'\(name)'"
            case .binary(let known): "'\(known.rawValue)'"
            case .and: "'&&'"
            case .or: "'||'"
            case .not: "'!'"
            case .assignment: "'='"
            case .mark(let mark): "'\(String(UnicodeScalar(mark)))'"
            case .end: "the end"
            }
        return TreeSyntaxError("Parse error: expected \(wanted), found \(found).", at: offset)
    }

    private mutating func take(_ mark: StaticString) throws(TreeSyntaxError) -> Bool {
        guard token == .mark(mark.utf8Start.pointee) else { return false }
        try advance()
        return true
    }

    private mutating func expect(_ mark: StaticString) throws(TreeSyntaxError) {
        if try !take(mark) { throw unexpected("'\(mark)'") }
    }

    // MARK: Operators

    private mutating func expression() throws(TreeSyntaxError) -> TreeSyntax {
        nesting += 1
        if nesting > TreeRulesLimits.expressionNestingMax { throw TreeSyntax.tooDeep(at: offset) }
        defer { nesting -= 1 }
        let condition = try disjunction()
        guard try take("?") else { return condition }
        let first = try expression()
        try expect(":")
        let second = try expression()
        return try TreeSyntax(
            .conditional(condition, first, second), at: condition.offset, above: [condition, first, second])
    }

    private mutating func disjunction() throws(TreeSyntaxError) -> TreeSyntax {
        var operands = [try conjunction()]
        while token == .or {
            try advance()
            operands.append(try conjunction())
        }
        if operands.count == 1 { return operands[0] }
        return try TreeSyntax(.logical(isAnd: false, operands), at: operands[0].offset, above: operands)
    }

    private mutating func conjunction() throws(TreeSyntaxError) -> TreeSyntax {
        var operands = [try binary(from: 3)]
        while token == .and {
            try advance()
            operands.append(try binary(from: 3))
        }
        if operands.count == 1 { return operands[0] }
        return try TreeSyntax(.logical(isAnd: true, operands), at: operands[0].offset, above: operands)
    }

    private mutating func binary(from precedence: Int) throws(TreeSyntaxError) -> TreeSyntax {
        var left = try unary()
        while case .binary(let known) = token, known.precedence >= precedence {
            try advance()
            let right = try binary(from: known.precedence + 1)
            left = try TreeSyntax(.binary(known, left, right), at: left.offset, above: [left, right])
        }
        return left
    }

    private mutating func unary() throws(TreeSyntaxError) -> TreeSyntax {
        let start = offset
        guard token == .not || token == .binary(.subtract) else { return try postfix() }
        let isNot = token == .not
        nesting += 1
        if nesting > TreeRulesLimits.expressionNestingMax { throw TreeSyntax.tooDeep(at: offset) }
        defer { nesting -= 1 }
        try advance()
        let operand = try unary()
        return try TreeSyntax(isNot ? .not(operand) : .negate(operand), at: start, above: [operand])
    }

    // MARK: Operands

    private mutating func postfix() throws(TreeSyntaxError) -> TreeSyntax {
        var operand = try primary()
        while true {
            if try take(".") {
                guard case .name(let name) = token else { throw unexpected("a name") }
                try advance()
                operand = try TreeSyntax(.member(operand, name), at: operand.offset, above: [operand])
            } else if try take("(") {
                let arguments = try list(until: ")")
                operand = try TreeSyntax(.call(operand, arguments), at: operand.offset, above: [operand] + arguments)
            } else if try take("[") {
                let index = try expression()
                try expect("]")
                if case .string(let name) = index.kind {
                    operand = try TreeSyntax(.member(operand, name), at: operand.offset, above: [operand])
                } else {
                    operand = try TreeSyntax(.element(operand, index), at: operand.offset, above: [operand, index])
                }
            } else {
                return operand
            }
        }
    }

    private mutating func list(until end: StaticString) throws(TreeSyntaxError) -> [TreeSyntax] {
        if try take(end) { return [] }
        var items = [try expression()]
        while try take(",") { items.append(try expression()) }
        try expect(end)
        return items
    }

    private mutating func primary() throws(TreeSyntaxError) -> TreeSyntax {
        let start = offset
        switch token {
        case .number(let value): return try literal(.number(value))
        case .string(let string): return try literal(.string(string))
        case .name("true"): return try literal(.bool(true))
        case .name("false"): return try literal(.bool(false))
        case .name("null"): return try literal(.null)
        case .name(let name): return try literal(.name(name))
        case .binary(.divide):
            let (pattern, flags) = try lexer.pattern(from: start)
            return try literal(.pattern(pattern, flags: flags))
        case .mark(UInt8(ascii: "(")):
            try advance()
            let inner = try expression()
            try expect(")")
            return inner
        case .mark(UInt8(ascii: "[")):
            try advance()
            let items = try list(until: "]")
            return try TreeSyntax(.array(items), at: start, above: items)
        default: throw unexpected("an operand")
        }
    }

    private mutating func literal(_ kind: TreeSyntax.Kind) throws(TreeSyntaxError) -> TreeSyntax {
        let literal = try TreeSyntax(kind, at: offset)
        try advance()
        return literal
    }
}
