/// Parses a source by recursive descent. After an error it continues after the statement, so that one run reports
/// several errors.
package struct Parser {
    /// Aborts a statement whose error has been reported.
    struct Failure: Error {}

    var lexer: Lexer
    var token: Token
    var issues = IssueList()
    /// Levels of the current expression, so that deep ones cannot exhaust the stack.
    var nesting = 0
    var matchDepth = 0
    /// Map literals that a failure left open.
    var openMaps = 0

    init(_ source: [UInt8]) {
        var lexer = Lexer(source)
        token = lexer.next()
        self.lexer = lexer
    }

    package static func parse(_ source: [UInt8]) -> (file: SourceFile, issues: IssueList) {
        var parser = Parser(source)
        let file = parser.sourceFile()
        return (file, parser.issues)
    }

    // MARK: Tokens

    mutating func advance() {
        token = lexer.next()
    }

    func isAt(_ symbol: Token.Symbol) -> Bool { token.isSymbol(symbol) }

    /// Takes a symbol if it is next.
    mutating func take(_ symbol: Token.Symbol) -> Bool {
        guard isAt(symbol) else { return false }
        advance()
        return true
    }

    mutating func expect(_ symbol: Token.Symbol) throws(Failure) {
        if !take(symbol) { throw unexpected() }
    }

    var tokenString: String { token.kind == .end ? "<EOF>" : lexer.string(token.range) }

    /// Reports that the current token is not allowed here.
    mutating func unexpected(hint: String? = nil) -> Failure {
        if case .unclosed(let quote) = token.kind {
            let mark = String(Unicode.Scalar(quote))
            issues.error(
                "Missing a closing \(mark)", at: SourceRange(Int(token.range.end), Int(token.range.end)),
                hint: "A backslash begins an escape: write \\\\ for a backslash itself.")
            issues.error("Unexpected '\(rest)'.", at: SourceRange(Int(token.range.end), Int(token.range.end)))
            return Failure()
        }
        if token.kind == .end, matchDepth > 0 {
            issues.error("missing '}' at '<EOF>'", at: token.range)
        } else {
            issues.error("Unexpected '\(tokenString)'.", at: token.range, hint: hint)
        }
        return Failure()
    }

    /// The characters after a broken literal, as far as they form a name.
    private var rest: String {
        var ahead = lexer
        ahead.position = Int(token.range.end)
        let next = ahead.next()
        return next.kind == .end ? "<EOF>" : String(ahead.string(next.range).prefix(40))
    }

    /// A declared name: any word except those that begin statements.
    mutating func identifier() throws(Failure) -> (name: String, range: SourceRange) {
        if token.isStatementWord { throw unexpected() }
        return try member()
    }

    /// The name of a member: any word.
    mutating func member() throws(Failure) -> (name: String, range: SourceRange) {
        guard case .identifier(let name) = token.kind else { throw unexpected() }
        let range = token.range
        advance()
        return (name, range)
    }

    // MARK: Recovery

    /// Skips the rest of a broken statement: past its semicolon, or to the end of a block or the start of a statement.
    mutating func recover() {
        let outer = openMaps
        var depth = outer
        openMaps = 0
        while token.kind != .end {
            if depth <= outer, take(.semicolon) { return }
            if depth <= outer, startsStatement { return }
            if depth == 0, isAt(.rightBrace) { return }
            if isAt(.leftBrace) { depth += 1 }
            if isAt(.rightBrace) { depth -= 1 }
            advance()
        }
    }

    /// Skips a statement that cannot be parsed at all, so that it is not parsed again.
    mutating func skipIfStuck(at range: SourceRange) {
        guard token.range == range, token.kind != .end else { return }
        advance()
        recover()
    }

    private var startsStatement: Bool {
        switch token.kind {
        case .identifier("allow"), .identifier("match"), .identifier("function"), .identifier("service"): true
        default: false
        }
    }

    /// Skips a block and its closing brace.
    mutating func skipBlock() {
        var depth = 1 + openMaps
        openMaps = 0
        while token.kind != .end, depth > 0 {
            if isAt(.leftBrace) { depth += 1 }
            if isAt(.rightBrace) { depth -= 1 }
            advance()
        }
    }
}
