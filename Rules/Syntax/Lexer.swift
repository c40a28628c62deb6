/// Splits a source into tokens, one at a time. The parser decides where a path begins, because `/` is not a division
/// there.
struct Lexer {
    let source: [UInt8]
    var position = 0

    init(_ source: [UInt8]) {
        self.source = source
    }

    func byte(_ offset: Int) -> UInt8 { offset < source.count ? source[offset] : 0 }

    /// The token at the position or after white space and comments; the position moves past it.
    mutating func next() -> Token {
        skipSpace()
        let start = position
        guard start < source.count else { return token(.end, from: start) }
        let first = source[start]
        if first == UInt8(ascii: "'") || first == UInt8(ascii: "\"") { return literal(from: start, isBytes: false) }
        if first == UInt8(ascii: "b") || first == UInt8(ascii: "B"),
            byte(start + 1) == UInt8(ascii: "'") || byte(start + 1) == UInt8(ascii: "\"")
        {
            position += 1
            return literal(from: start, isBytes: true)
        }
        if Self.isNameStart(first) { return word(from: start) }
        if Self.isDigit(first) { return number(from: start) }
        return symbol(from: start)
    }

    private func token(_ kind: Token.Kind, from start: Int) -> Token {
        Token(kind: kind, range: SourceRange(start, position))
    }

    func string(_ range: SourceRange) -> String {
        String(decoding: source[Int(range.start)..<Int(range.end)], as: UTF8.self)
    }

    mutating func skipSpace() {
        while position < source.count {
            switch source[position] {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"), 0x0C: position += 1
            case UInt8(ascii: "/"):
                if byte(position + 1) == UInt8(ascii: "/") {
                    while position < source.count, source[position] != UInt8(ascii: "\n") { position += 1 }
                } else if byte(position + 1) == UInt8(ascii: "*") {
                    skipComment()
                } else {
                    return
                }
            default: return
            }
        }
    }

    private mutating func skipComment() {
        position += 2
        while position < source.count {
            if source[position] == UInt8(ascii: "*"), byte(position + 1) == UInt8(ascii: "/") {
                position += 2
                return
            }
            position += 1
        }
    }

    private mutating func word(from start: Int) -> Token {
        while position < source.count, Self.isNameStart(source[position]) || Self.isDigit(source[position]) {
            position += 1
        }
        let string = String(decoding: source[start..<position], as: UTF8.self)
        return token(Token.Keyword(rawValue: string).map { .keyword($0) } ?? .identifier(string), from: start)
    }

    private mutating func number(from start: Int) -> Token {
        skipDigits()
        if byte(position) == UInt8(ascii: ".") {
            position += 1
            skipDigits()
            // Java and C accept digits followed by a point; Swift requires digits after it.
            let string = String(decoding: source[start..<position], as: UTF8.self)
            return token(.float(Double(string.hasSuffix(".") ? string + "0" : string) ?? .infinity), from: start)
        }
        let string = String(decoding: source[start..<position], as: UTF8.self)
        return token(Int64(string).map { .integer($0) } ?? .largeInteger(string), from: start)
    }

    private mutating func skipDigits() {
        while Self.isDigit(byte(position)) { position += 1 }
    }

    /// The symbols by their first byte, the longest first.
    private static let symbols: [[(string: [UInt8], symbol: Token.Symbol)]] = {
        var table: [[(string: [UInt8], symbol: Token.Symbol)]] = Array(repeating: [], count: 128)
        for symbol in Token.Symbol.allCases.sorted(by: { $0.rawValue.utf8.count > $1.rawValue.utf8.count }) {
            let string = Array(symbol.rawValue.utf8)
            table[Int(string[0])].append((string, symbol))
        }
        return table
    }()

    private mutating func symbol(from start: Int) -> Token {
        if source[start] < 0x80 {
            for candidate in Self.symbols[Int(source[start])]
            where candidate.string.indices.allSatisfy({ byte(start + $0) == candidate.string[$0] }) {
                position = start + candidate.string.count
                return token(.symbol(candidate.symbol), from: start)
            }
        }
        position += 1
        while position < source.count, source[position] & 0xC0 == 0x80 { position += 1 }
        return token(.unknown, from: start)
    }

    static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    static func isNameStart(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte == UInt8(ascii: "_")
    }
}
