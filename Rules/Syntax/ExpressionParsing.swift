/// Parses expressions, by precedence climbing.
extension Parser {
    /// Builds a node.
    /// - Parameter focus: the location in Google's reports, when it is not the beginning.
    /// - Throws: when it has too many levels.
    mutating func make(
        _ kind: ExpressionKind, _ range: SourceRange, focus: SourceRange? = nil
    ) throws(Failure) -> Expression {
        let (level, depth) = Self.measure(kind)
        if level > RulesLimits.expressionLevelMax || depth > RulesLimits.expressionDepthMax {
            throw tooComplex(at: focus ?? range)
        }
        return Expression(kind: kind, range: range, focus: focus ?? range, level: level, depth: depth)
    }

    private mutating func tooComplex(at range: SourceRange) -> Failure {
        issues.error(
            "Expression is too complex to evaluate safely.", at: range, hint: "Put parts of it into functions.")
        return Failure()
    }

    /// The levels in Google's compiler, by measurement: members and receivers of methods add none.
    private static func measure(_ kind: ExpressionKind) -> (level: Int, depth: Int) {
        var level = 0
        var depth = 0
        func add(_ child: Expression, levels: Int = 1) {
            level = max(level, child.level + levels)
            depth = max(depth, child.depth + 1)
        }
        switch kind {
        case .null, .boolean, .integer, .float, .string, .bytes, .variable: break
        case .list(let elements): elements.forEach { add($0) }
        case .map(let entries):
            for entry in entries {
                add(entry.key)
                add(entry.value)
            }
        case .path(let parts): for case .interpolation(let value) in parts { add(value) }
        case .group(let inner), .unary(_, let inner), .isType(let inner, _): add(inner)
        case .binary(_, let left, let right):
            add(left)
            add(right)
        case .conditional(let condition, let first, let second):
            add(condition)
            add(first)
            add(second)
        case .member(let receiver, _): add(receiver, levels: 0)
        case .index(let receiver, let index):
            add(receiver, levels: 0)
            add(index)
        case .slice(let receiver, let from, let to):
            add(receiver, levels: 0)
            if let from { add(from) }
            if let to { add(to) }
        case .call(_, let arguments): arguments.forEach { add($0) }
        case .method(let receiver, _, let arguments):
            add(receiver, levels: 0)
            arguments.forEach { add($0) }
        }
        return (max(level, 1), max(depth, 1))
    }

    var startsExpression: Bool {
        switch token.kind {
        case .identifier: !token.isStatementWord
        case .integer, .largeInteger, .float, .string, .bytes, .unclosed: true
        case .keyword(let keyword): keyword == .true || keyword == .false || keyword == .null
        case .symbol(let symbol):
            switch symbol {
            case .leftBrace, .leftParenthesis, .leftBracket, .slash, .minus, .not, .increment, .decrement: true
            default: false
            }
        case .unknown, .end: false
        }
    }

    mutating func expression() throws(Failure) -> Expression {
        // An expression that is nested too deep is rejected before the stack overflows.
        nesting += 1
        defer { nesting -= 1 }
        if nesting > RulesLimits.expressionLevelMax { throw tooComplex(at: token.range) }
        let condition = try binary(1)
        guard isAt(.question) else { return condition }
        let focus = token.range
        advance()
        let first = try expression()
        try expect(.colon)
        let second = try expression()
        return try make(
            .conditional(condition, first, second), condition.range.through(second.range), focus: focus)
    }

    private static let binaryOperators = Dictionary(
        uniqueKeysWithValues: Token.Symbol.allCases.compactMap { symbol in
            BinaryOperator(rawValue: symbol.rawValue).map { (symbol, $0) }
        })

    private func binaryOperator() -> BinaryOperator? {
        switch token.kind {
        case .keyword(.in): .in
        case .symbol(let symbol): Self.binaryOperators[symbol]
        default: nil
        }
    }

    private mutating func binary(_ minimum: Int) throws(Failure) -> Expression {
        var left = try unary()
        while true {
            if token.kind == .keyword(.is), BinaryOperator.membershipPrecedence >= minimum {
                let focus = token.range
                advance()
                let (type, range) = try typeName()
                left = try make(.isType(left, type), left.range.through(range), focus: focus)
                continue
            }
            guard let symbol = binaryOperator(), symbol.precedence >= minimum else { return left }
            if symbol == .divide { checkDivision() }
            let focus = token.range
            advance()
            let right = try binary(symbol.precedence + 1)
            left = try make(.binary(symbol, left, right), left.range.through(right.range), focus: focus)
        }
    }

    /// To Google's compiler, a slash directly before a name or a number always begins a path.
    private mutating func checkDivision() {
        guard beginsSegment(Int(token.range.end)) else { return }
        issues.error(
            "Missing 'match' keyword before path.", at: token.range,
            hint:
                "A '/' directly before a name, a number or a parenthesis begins a path: put a space after it to divide."
        )
    }

    private mutating func typeName() throws(Failure) -> (String, SourceRange) {
        let range = token.range
        let name = tokenString
        guard case .identifier = token.kind else {
            issues.error("mismatched input '\(name)' expecting IDENTIFIER", at: range)
            throw Failure()
        }
        advance()
        if !RuleType.testable.contains(name) {
            issues.error(
                "An unsupported type identifier was used with the 'is' operator. Received \(name). Expected one of "
                    + RuleType.testable.joined(separator: ","), at: SourceRange(Int(range.end), Int(range.end)))
        }
        return (name, range)
    }

    private mutating func unary() throws(Failure) -> Expression {
        let start = token.range
        guard case .symbol(let symbol) = token.kind else { return try postfix() }
        switch symbol {
        case .increment, .decrement:
            issues.error("Increment (++) and decrement (--) operators are not supported.", at: start)
            throw Failure()
        case .not, .minus:
            nesting += 1
            defer { nesting -= 1 }
            if nesting > RulesLimits.expressionLevelMax { throw tooComplex(at: token.range) }
            advance()
            if symbol == .minus, case .largeInteger("9223372036854775808") = token.kind {
                let range = start.through(token.range)
                advance()
                return try make(.integer(.min), range)
            }
            let operand = try unary()
            return try make(
                .unary(symbol == .not ? .not : .negate, operand), start.through(operand.range))
        default: return try postfix()
        }
    }

    private mutating func postfix() throws(Failure) -> Expression {
        var value = try primary()
        while true {
            if take(.dot) {
                let (name, range) = try memberName()
                if isAt(.leftParenthesis) {
                    let (arguments, end) = try arguments()
                    value = try make(
                        .method(value, name, arguments), value.range.through(end), focus: range)
                } else {
                    value = try make(.member(value, name), value.range.through(range), focus: range)
                }
            } else if isAt(.leftBracket) {
                value = try subscription(of: value)
            } else {
                return value
            }
        }
    }

    /// Keywords are valid members, too.
    private mutating func memberName() throws(Failure) -> (String, SourceRange) {
        if case .keyword(let keyword) = token.kind {
            let range = token.range
            advance()
            return (keyword.rawValue, range)
        }
        return try member()
    }

    private mutating func subscription(of value: Expression) throws(Failure) -> Expression {
        advance()
        let from = isAt(.colon) ? nil : try expression()
        if take(.colon) {
            let to = isAt(.rightBracket) ? nil : try expression()
            let end = token.range
            try expect(.rightBracket)
            return try make(.slice(value, from, to), value.range.through(end))
        }
        let end = token.range
        try expect(.rightBracket)
        guard let from else { throw unexpected() }
        return try make(.index(value, from), value.range.through(end))
    }

    private mutating func arguments() throws(Failure) -> ([Expression], end: SourceRange) {
        try expect(.leftParenthesis)
        var arguments: [Expression] = []
        if !isAt(.rightParenthesis) {
            repeat { arguments.append(try expression()) } while take(.comma) && !isAt(.rightParenthesis)
        }
        let end = token.range
        try expect(.rightParenthesis)
        return (arguments, end)
    }

    private mutating func primary() throws(Failure) -> Expression {
        let range = token.range
        let kind: ExpressionKind
        switch token.kind {
        case .keyword(.true): kind = .boolean(true)
        case .keyword(.false): kind = .boolean(false)
        case .keyword(.null): kind = .null
        case .integer(let value): kind = .integer(value)
        case .float(let value): kind = .float(value)
        case .string(let value): kind = .string(value)
        case .bytes(let value): kind = .bytes(value)
        case .identifier(let name) where !token.isStatementWord:
            advance()
            guard isAt(.leftParenthesis) else { return try make(.variable(name), range) }
            let (arguments, end) = try arguments()
            return try make(.call(name, arguments), range.through(end), focus: range)
        case .largeInteger(let string):
            issues.error("Invalid number literal \(string).", at: range)
            kind = .integer(0)
        case .symbol(.leftParenthesis):
            advance()
            let inner = try expression()
            let end = token.range
            try expect(.rightParenthesis)
            return try make(.group(inner), range.through(end))
        case .symbol(.leftBracket): return try list()
        case .symbol(.leftBrace): return try map()
        case .symbol(.slash): return try path()
        default: throw unexpected()
        }
        advance()
        return try make(kind, range)
    }

    private mutating func list() throws(Failure) -> Expression {
        let start = token.range
        advance()
        var elements: [Expression] = []
        while !isAt(.rightBracket) {
            elements.append(try expression())
            if !take(.comma) { break }
        }
        let end = token.range
        try expect(.rightBracket)
        return try make(.list(elements), start.through(end))
    }

    private mutating func map() throws(Failure) -> Expression {
        let start = token.range
        openMaps += 1
        advance()
        var entries: [MapEntry] = []
        while !isAt(.rightBrace) {
            let key = try expression()
            try expect(.colon)
            entries.append(MapEntry(key: key, value: try expression()))
            if !take(.comma) { break }
        }
        let end = token.range
        try expect(.rightBrace)
        openMaps -= 1
        return try make(.map(entries), start.through(end))
    }
}
