/// The tokens of a rule expression.
struct TreeLexer {
    enum Token: Equatable {
        case number(Double)
        case string(String)
        /// A variable, a member's name, or one of `true`, `false` and `null`.
        case name(String)
        case binary(TreeOperator)
        case and
        case or
        case not
        /// Any assignment operator; rules have none.
        case assignment
        /// One of `( ) [ ] , . ? :`
        case mark(UInt8)
        case end
    }

    private let source: [UInt8]
    private var position = 0

    init(_ source: [UInt8]) {
        self.source = source
    }

    private func byte(_ distance: Int = 0) -> UInt8? {
        position + distance < source.count ? source[position + distance] : nil
    }

    /// The next token and its offset.
    mutating func next() throws(TreeSyntaxError) -> (token: Token, offset: Int) {
        while let byte = byte(), byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) { position += 1 }
        let start = position
        guard let first = byte() else { return (.end, start) }
        if Lexer.isDigit(first) || (first == UInt8(ascii: ".") && byte(1).map(Lexer.isDigit) == true) {
            return (try number(), start)
        }
        if Self.isName(first) {
            while let byte = byte(), Self.isName(byte) || Lexer.isDigit(byte) { position += 1 }
            return (.name(String(decoding: source[start..<position], as: UTF8.self)), start)
        }
        if first == UInt8(ascii: "'") || first == UInt8(ascii: "\"") { return (.string(try string(first)), start) }
        return (try symbol(first), start)
    }

    private static func isName(_ byte: UInt8) -> Bool {
        (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z")) || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "$") || byte >= 0x80
    }

    // MARK: Symbols

    private mutating func take(_ string: StaticString) -> Bool {
        let matches = string.withUTF8Buffer { source[position...].starts(with: $0) }
        if matches { position += string.utf8CodeUnitCount }
        return matches
    }

    private mutating func symbol(_ first: UInt8) throws(TreeSyntaxError) -> Token {
        if take("===") || take("==") { return .binary(.equal) }
        if take("!==") || take("!=") { return .binary(.notEqual) }
        if take("<=") { return .binary(.lessOrEqual) }
        if take(">=") { return .binary(.greaterOrEqual) }
        if take("&&") { return .and }
        if take("||") { return .or }
        if take("=") || take("+=") || take("-=") || take("*=") || take("%=") { return .assignment }
        if take("!") { return .not }
        if let known = TreeOperator(rawValue: String(UnicodeScalar(first))) {
            position += 1
            return .binary(known)
        }
        switch first {
        case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ","),
            UInt8(ascii: "."), UInt8(ascii: "?"), UInt8(ascii: ":"):
            position += 1
            return .mark(first)
        default: throw TreeSyntaxError("Parse error: unexpected '\(String(UnicodeScalar(first)))'.", at: position)
        }
    }

    // MARK: Numbers

    private mutating func digits() -> String {
        let start = position
        while let byte = byte(), Lexer.isDigit(byte) { position += 1 }
        return start == position ? "0" : String(decoding: source[start..<position], as: UTF8.self)
    }

    /// JavaScript's decimals: digits on one side of the point are enough.
    private mutating func number() throws(TreeSyntaxError) -> Token {
        let start = position
        var string = digits()
        if byte() == UInt8(ascii: ".") {
            position += 1
            string += "." + digits()
        }
        var isLegal = true
        if let exponent = byte(), exponent | 0x20 == UInt8(ascii: "e") {
            position += 1
            let isNegative = byte() == UInt8(ascii: "-")
            if isNegative || byte() == UInt8(ascii: "+") { position += 1 }
            isLegal = byte().map(Lexer.isDigit) ?? false
            string += (isNegative ? "e-" : "e") + digits()
        }
        if let byte = byte(), Self.isName(byte) { isLegal = false }
        guard isLegal, let value = Double(string) else {
            throw TreeSyntaxError("Parse error: illegal number.", at: start)
        }
        return .number(value)
    }

    // MARK: Strings

    private mutating func string(_ quote: UInt8) throws(TreeSyntaxError) -> String {
        let start = position
        position += 1
        var string: [UInt8] = []
        while let byte = byte() {
            position += 1
            if byte == quote { return String(decoding: string, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") {
                try escape(into: &string)
            } else {
                string.append(byte)
            }
        }
        throw TreeSyntaxError("unterminated string literal", at: start)
    }

    /// An escape after its backslash, by JavaScript's rules.
    private mutating func escape(into string: inout [UInt8]) throws(TreeSyntaxError) {
        let start = position - 1
        guard let byte = byte() else { return }
        position += 1
        switch byte {
        case UInt8(ascii: "b"): string.append(0x08)
        case UInt8(ascii: "t"): string.append(0x09)
        case UInt8(ascii: "n"): string.append(0x0A)
        case UInt8(ascii: "v"): string.append(0x0B)
        case UInt8(ascii: "f"): string.append(0x0C)
        case UInt8(ascii: "r"): string.append(0x0D)
        case 0x0A: break  // A line continuation.
        case UInt8(ascii: "x"): try scalar(start, digits: 2, into: &string)
        case UInt8(ascii: "u"): try scalar(start, digits: 4, into: &string)
        default:
            string.append(byte)
        }
    }

    private mutating func scalar(_ start: Int, digits: Int, into string: inout [UInt8]) throws(TreeSyntaxError) {
        guard var value = hexadecimal(digits) else { throw TreeSyntaxError("illegal escape", at: start) }
        if value & 0xFC00 == 0xD800, byte() == UInt8(ascii: "\\"), byte(1) == UInt8(ascii: "u") {
            position += 2
            guard let low = hexadecimal(4), low & 0xFC00 == 0xDC00 else {
                throw TreeSyntaxError("illegal escape", at: start)
            }
            value = 0x10000 + (value & 0x3FF) << 10 + low & 0x3FF
        }
        guard let scalar = UnicodeScalar(value) else { throw TreeSyntaxError("illegal escape", at: start) }
        string += String(Character(scalar)).utf8
    }

    private mutating func hexadecimal(_ count: Int) -> UInt32? {
        guard position + count <= source.count else { return nil }
        var value: UInt32 = 0
        for byte in source[position..<position + count] {
            guard byte < 0x80, let digit = Character(UnicodeScalar(byte)).hexDigitValue else { return nil }
            value = value << 4 | UInt32(digit)
        }
        position += count
        return value
    }

    // MARK: Regular expressions

    /// Reads a regular expression, whose slash was read as a division.
    mutating func pattern(from start: Int) throws(TreeSyntaxError) -> (pattern: String, flags: String) {
        position = start + 1
        var isInClass = false
        while let byte = byte() {
            switch byte {
            case UInt8(ascii: "\\"): position += 1
            case UInt8(ascii: "["): isInClass = true
            case UInt8(ascii: "]"): isInClass = false
            case UInt8(ascii: "/") where !isInClass:
                let end = position
                position += 1
                while let flag = self.byte(), Self.isName(flag) { position += 1 }
                return (
                    String(decoding: source[start + 1..<end], as: UTF8.self),
                    String(decoding: source[end + 1..<position], as: UTF8.self)
                )
            default: break
            }
            position += 1
        }
        throw TreeSyntaxError("unterminated regular expression literal", at: start)
    }
}
