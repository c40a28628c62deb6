/// A regular expression of the Realtime Database's rules. Its own small syntax is translated to RE2.
///
/// Supported are literals, `.`, `\s \w \d` and their opposites, `\` to quote any other character, `* + ?`, `{n}`,
/// `{n,}`, `{n,m}`, groups, `|` between non-empty alternatives, classes with ranges, `^` as the first and `$` as the
/// last character, and the flag `i`. Source: "Regular expressions" in the reference of the database's security rules.
package struct TreePattern: Sendable {
    private let expression: RegularExpression

    /// - Parameter offset: the offset of the first byte after the slash, for errors.
    package init(_ pattern: String, flags: String, at offset: Int) throws(TreeSyntaxError) {
        guard flags.isEmpty || flags == "i" else {
            throw TreeSyntaxError("regular expressions do not support flags other than i", at: offset)
        }
        var translation = Translation(Array(pattern.utf8), offset)
        let translated = try translation.run()
        guard
            let expression = RegularExpression(
                (flags == "i" ? "(?si)" : "(?s)") + translated, memoryBytes: TreeRulesLimits.patternMemoryBytesMax)
        else {
            throw TreeSyntaxError(
                "invalid regular expression: it is too large, or has a range out of order", at: offset)
        }
        self.expression = expression
    }

    /// Whether it occurs anywhere in the string.
    package func isFound(in string: String) -> Bool { expression.isFound(in: string) }

    /// Translates the pattern to RE2's syntax, or reports unsupported syntax.
    private struct Translation {
        private let source: [UInt8]
        private let offset: Int
        private var position = 0
        private var output: [UInt8] = []
        private var nesting = 0

        init(_ source: [UInt8], _ offset: Int) {
            self.source = source
            self.offset = offset
        }

        private var byte: UInt8? { position < source.count ? source[position] : nil }

        private func error(_ what: String, at position: Int? = nil) -> TreeSyntaxError {
            TreeSyntaxError("invalid regular expression: \(what)", at: offset + (position ?? self.position))
        }

        mutating func run() throws(TreeSyntaxError) -> String {
            if source.isEmpty { throw error("it is empty") }
            try alternatives()
            if byte != nil { throw error("unmatched ')'") }
            return String(decoding: output, as: UTF8.self)
        }

        /// Reads up to the end or a closing parenthesis.
        private mutating func alternatives() throws(TreeSyntaxError) {
            var isEmpty = true
            while let byte {
                if byte == UInt8(ascii: ")") { break }
                if byte == UInt8(ascii: "|") {
                    if isEmpty { throw error("empty alternative") }
                    output.append(byte)
                    position += 1
                    isEmpty = true
                } else {
                    let isRepeatable = try atom(byte)
                    if isRepeatable { try quantifier() }
                    isEmpty = false
                }
            }
            if isEmpty { throw error("empty alternative") }
        }

        /// - Returns: whether it may be repeated.
        private mutating func atom(_ byte: UInt8) throws(TreeSyntaxError) -> Bool {
            switch byte {
            case UInt8(ascii: "^"):
                if position != 0 { throw error("'^' is only supported at the beginning") }
                output.append(byte)
                position += 1
                return false
            case UInt8(ascii: "$"):
                if position != source.count - 1 { throw error("'$' is only supported at the end") }
                output.append(byte)
                position += 1
                return false
            case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
                throw error("nothing to repeat")
            case UInt8(ascii: "("): try group()
            case UInt8(ascii: "["): try characterClass()
            case UInt8(ascii: "\\"): try escape(isInClass: false)
            case UInt8(ascii: "."):
                output.append(byte)
                position += 1
            default: literal()
            }
            return true
        }

        private mutating func group() throws(TreeSyntaxError) {
            let start = position
            position += 1
            nesting += 1
            if byte == UInt8(ascii: "?") { throw error("groups with '?' are not supported") }
            if nesting > TreeRulesLimits.patternNestingMax { throw error("groups are nested too deeply") }
            output += "(?:".utf8
            try alternatives()
            guard byte == UInt8(ascii: ")") else { throw error("unterminated group", at: start) }
            output.append(UInt8(ascii: ")"))
            position += 1
            nesting -= 1
        }

        /// One literal character, quoted if it has a meaning to RE2.
        private mutating func literal() {
            let first = source[position]
            let isPlain = first >= 0x80 || Lexer.isDigit(first) || Self.isLetter(first) || first <= 0x20
            if !isPlain { output.append(UInt8(ascii: "\\")) }
            repeat {
                output.append(source[position])
                position += 1
            } while position < source.count && source[position] & 0xC0 == 0x80
        }

        private static func isLetter(_ byte: UInt8) -> Bool {
            (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z")) || byte == UInt8(ascii: "_")
        }

        private mutating func escape(isInClass: Bool) throws(TreeSyntaxError) {
            let start = position
            position += 1
            guard let byte else { throw error("a backslash at the end", at: start) }
            switch byte {
            case UInt8(ascii: "s"), UInt8(ascii: "w"), UInt8(ascii: "d"), UInt8(ascii: "S"), UInt8(ascii: "W"),
                UInt8(ascii: "D"):
                output += [UInt8(ascii: "\\"), byte]
                position += 1
            case UInt8(ascii: "b") where !isInClass, UInt8(ascii: "B") where !isInClass:
                throw error("word boundaries are not supported", at: start)
            case UInt8(ascii: "1")...UInt8(ascii: "9"): throw error("back references are not supported", at: start)
            default: literal()
            }
        }

        private mutating func quantifier() throws(TreeSyntaxError) {
            switch byte {
            case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"):
                output.append(source[position])
                position += 1
            case UInt8(ascii: "{"): try counted()
            default: return
            }
            switch byte {
            case UInt8(ascii: "?"): throw error("lazy quantifiers are not supported")
            case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "{"): throw error("nothing to repeat")
            default: break
            }
        }

        /// `{n}`, `{n,}` or `{n,m}`
        private mutating func counted() throws(TreeSyntaxError) {
            let start = position
            position += 1
            let least = count()
            var most = least
            if byte == UInt8(ascii: ",") {
                position += 1
                most = byte == UInt8(ascii: "}") ? Int.max : count()
            }
            guard let least, let most, least <= most, byte == UInt8(ascii: "}") else {
                throw error("'{' begins a number of repetitions, as in {2,5}", at: start)
            }
            position += 1
            output += source[start..<position]
        }

        private mutating func count() -> Int? {
            let start = position
            while let byte, Lexer.isDigit(byte) { position += 1 }
            return Int(String(decoding: source[start..<position], as: UTF8.self))
        }

        // MARK: Classes

        private mutating func characterClass() throws(TreeSyntaxError) {
            let start = position
            output.append(UInt8(ascii: "["))
            position += 1
            if byte == UInt8(ascii: "^") {
                output.append(UInt8(ascii: "^"))
                position += 1
            }
            var isEmpty = true
            while let byte, byte != UInt8(ascii: "]") {
                isEmpty = false
                if byte == UInt8(ascii: "\\") {
                    try escape(isInClass: true)
                } else if byte == UInt8(ascii: "-"), isRange(start) {
                    output.append(byte)
                    position += 1
                } else {
                    literal()
                }
            }
            if byte == nil { throw error("unterminated class", at: start) }
            if isEmpty { throw error("empty class", at: start) }
            output.append(UInt8(ascii: "]"))
            position += 1
        }

        /// Whether a hyphen has an end on both sides.
        private func isRange(_ start: Int) -> Bool {
            let isFirst = position == start + 1 || (position == start + 2 && source[start + 1] == UInt8(ascii: "^"))
            let isLast = position + 1 < source.count && source[position + 1] == UInt8(ascii: "]")
            return !isFirst && !isLast && !isBehindShorthand
        }

        /// `[\w-.]`: the hyphen and the next character are literals.
        private var isBehindShorthand: Bool {
            guard position >= 2, source[position - 2] == UInt8(ascii: "\\") else { return false }
            return "swdSWD".utf8.contains(source[position - 1]) && !isQuoted(position - 2)
        }

        /// Whether a backslash is itself quoted.
        private func isQuoted(_ position: Int) -> Bool {
            var count = 0
            while position - count - 1 >= 0, source[position - count - 1] == UInt8(ascii: "\\") { count += 1 }
            return count % 2 == 1
        }
    }
}
