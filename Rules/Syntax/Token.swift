/// The smallest parts of a source.
struct Token: Sendable {
    enum Kind: Sendable, Equatable {
        /// A name, including contextual keywords such as `match`.
        case identifier(String)
        case keyword(Keyword)
        case integer(Int64)
        /// Digits beyond 64 bits; the negative of 2^63 is the only such number that is legal.
        case largeInteger(String)
        case float(Double)
        case string(String)
        case bytes([UInt8])
        case symbol(Symbol)
        /// A character that begins no token.
        case unknown
        /// A literal without its end.
        case unclosed(UInt8)
        case end
    }

    /// Words that are not valid names of variables.
    enum Keyword: String, Sendable {
        case `true`, `false`, null, `in`, `is`, `if`, `let`, `return`
    }

    enum Symbol: String, Sendable, CaseIterable {
        case leftBrace = "{", rightBrace = "}", leftParenthesis = "(", rightParenthesis = ")"
        case leftBracket = "[", rightBracket = "]", comma = ",", colon = ":", semicolon = ";", dot = "."
        case question = "?", assign = "="
        case or = "||", and = "&&", equal = "==", notEqual = "!="
        case less = "<", lessOrEqual = "<=", greater = ">", greaterOrEqual = ">="
        case plus = "+", minus = "-", times = "*", slash = "/", percent = "%", not = "!"
        case increment = "++", decrement = "--"
        /// `=**` of a capture.
        case glob = "=**"
        /// `=*` of a capture, which has no effect.
        case single = "=*"
    }

    let kind: Kind
    let range: SourceRange

    func isSymbol(_ symbol: Symbol) -> Bool { kind == .symbol(symbol) }
    func isWord(_ word: String) -> Bool { kind == .identifier(word) }

    /// Whether this word begins a statement, and so is not a valid name.
    var isStatementWord: Bool {
        guard case .identifier(let name) = kind else { return false }
        switch name {
        case "match", "allow", "service", "function", "import", "rules_version": return true
        default: return false
        }
    }
}
