import HearthJSON

/// A value of the rules document, before it is interpreted.
struct RulesJSON {
    enum Content {
        case object([Member])
        case array([RulesJSON])
        case string(RulesText)
        case bool(Bool)
        /// Numbers and null, which have no meaning in rules.
        case other
    }

    struct Member {
        var name: RulesText
        var value: RulesJSON
    }

    var content: Content
    /// The offset of its first byte.
    var offset: Int
}

/// A string of the rules document: its content, and the offset of each byte in the document.
struct RulesText {
    var bytes: [UInt8]
    /// The offset of the byte after the opening quote.
    private let start: Int
    /// The positions after escapes, where the difference between the two offsets changes.
    private var jumps: [(decoded: Int, source: Int)] = []

    init(start: Int) {
        bytes = []
        self.start = start
    }

    /// The offset of the opening quote.
    var offset: Int { start - 1 }

    var string: String { String(decoding: bytes, as: UTF8.self) }

    mutating func append(escaped: some Sequence<UInt8>, endingAt source: Int) {
        bytes += escaped
        jumps.append((bytes.count, source))
    }

    /// The offset in the document of a byte of the content.
    func documentOffset(_ offset: Int) -> Int {
        var low = 0
        var high = jumps.count
        while low < high {
            let middle = (low + high) / 2
            if jumps[middle].decoded <= offset { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? start + offset : jumps[low - 1].source + offset - jumps[low - 1].decoded
    }
}

/// Reads JSON with the extensions of rules: comments, strings over several lines, and trailing commas.
///
/// It is no `JSONLexer`, because Firebase's rules are not JSON: what that lexer must reject is allowed here, and each
/// byte of a string keeps its offset in the document for the errors of the expressions in it. The escapes are JSON's.
struct RulesJSONParser {
    private let source: [UInt8]
    private var offset = 0
    private var depth = 0

    /// - Parameter source: valid UTF-8.
    static func parse(_ source: [UInt8]) throws(TreeSyntaxError) -> RulesJSON {
        var parser = RulesJSONParser(source)
        try parser.skipSpace()
        let value = try parser.value()
        try parser.skipSpace()
        if parser.offset < source.count { throw parser.unexpected("the end") }
        return value
    }

    /// Whether the first token after white space and comments opens an object.
    static func beginsWithObject(_ source: [UInt8]) -> Bool {
        var parser = RulesJSONParser(source)
        do throws(TreeSyntaxError) {
            try parser.skipSpace()
        } catch {
            return false
        }
        return parser.byte == UInt8(ascii: "{")
    }

    private init(_ source: [UInt8]) {
        self.source = source
        // A byte order mark, which some editors write.
        if source.starts(with: [0xEF, 0xBB, 0xBF]) { offset = 3 }
    }

    private var byte: UInt8? { offset < source.count ? source[offset] : nil }

    private func unexpected(_ wanted: String) -> TreeSyntaxError {
        guard offset < source.count else {
            return TreeSyntaxError("Parse error: expected \(wanted), but the rules end here.", at: offset)
        }
        var end = offset + 1
        while end < source.count, source[end] & 0xC0 == 0x80 { end += 1 }
        let found = String(decoding: source[offset..<end], as: UTF8.self)
        return TreeSyntaxError("Parse error: expected \(wanted), found '\(found)'.", at: offset)
    }

    // MARK: Space

    private mutating func skipSpace() throws(TreeSyntaxError) {
        while let byte {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): offset += 1
            case UInt8(ascii: "/"): try skipComment()
            default: return
            }
        }
    }

    private mutating func skipComment() throws(TreeSyntaxError) {
        let start = offset
        offset += 1
        switch byte {
        case UInt8(ascii: "/"):
            while let byte, byte != UInt8(ascii: "\n") { offset += 1 }
        case UInt8(ascii: "*"):
            offset += 1
            while offset + 1 < source.count {
                if source[offset] == UInt8(ascii: "*"), source[offset + 1] == UInt8(ascii: "/") {
                    offset += 2
                    return
                }
                offset += 1
            }
            throw TreeSyntaxError("Parse error: unterminated comment.", at: start)
        default:
            offset = start
            throw unexpected("a value or a comment")
        }
    }

    // MARK: Values

    private mutating func value() throws(TreeSyntaxError) -> RulesJSON {
        let start = offset
        switch byte {
        case UInt8(ascii: "{"): return RulesJSON(content: .object(try object()), offset: start)
        case UInt8(ascii: "["): return RulesJSON(content: .array(try array()), offset: start)
        case UInt8(ascii: "\""): return RulesJSON(content: .string(try string()), offset: start)
        default: return RulesJSON(content: try word(), offset: start)
        }
    }

    /// `true`, `false`, `null` or a number.
    private mutating func word() throws(TreeSyntaxError) -> RulesJSON.Content {
        let start = offset
        while let byte, Self.isWord(byte) { offset += 1 }
        let string = String(decoding: source[start..<offset], as: UTF8.self)
        switch string {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .other
        default:
            let first = source[start..<offset].first
            if let first, first == UInt8(ascii: "-") || Lexer.isDigit(first), Double(string) != nil { return .other }
            offset = start
            throw unexpected("a value")
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        Lexer.isDigit(byte) || (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z"))
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") || byte == UInt8(ascii: ".")
    }

    private mutating func enter() throws(TreeSyntaxError) {
        depth += 1
        if depth > TreeRulesLimits.documentDepthMax {
            throw TreeSyntaxError(
                "Rules are nested too deeply: at most \(TreeRulesLimits.documentDepthMax) levels.", at: offset)
        }
        offset += 1
        try skipSpace()
    }

    private mutating func leave() {
        offset += 1
        depth -= 1
    }

    /// Takes the comma after an item; false at the end.
    private mutating func comma(before end: UInt8) throws(TreeSyntaxError) {
        try skipSpace()
        if byte == UInt8(ascii: ",") {
            offset += 1
            try skipSpace()
        } else if byte != end {
            throw unexpected("',' or '\(Character(UnicodeScalar(end)))'")
        }
    }

    private mutating func object() throws(TreeSyntaxError) -> [RulesJSON.Member] {
        try enter()
        var members: [RulesJSON.Member] = []
        while byte != UInt8(ascii: "}") {
            guard byte == UInt8(ascii: "\"") else { throw unexpected("a key in double quotes or '}'") }
            let name = try string()
            try skipSpace()
            guard byte == UInt8(ascii: ":") else { throw unexpected("':'") }
            offset += 1
            try skipSpace()
            members.append(RulesJSON.Member(name: name, value: try value()))
            try comma(before: UInt8(ascii: "}"))
        }
        leave()
        return members
    }

    private mutating func array() throws(TreeSyntaxError) -> [RulesJSON] {
        try enter()
        var items: [RulesJSON] = []
        while byte != UInt8(ascii: "]") {
            items.append(try value())
            try comma(before: UInt8(ascii: "]"))
        }
        leave()
        return items
    }

    // MARK: Strings

    private mutating func string() throws(TreeSyntaxError) -> RulesText {
        let start = offset
        offset += 1
        var string = RulesText(start: offset)
        while let byte {
            switch byte {
            case UInt8(ascii: "\""):
                offset += 1
                return string
            case UInt8(ascii: "\\"): try escape(into: &string)
            // Tabs and line feeds are allowed in a string.
            case 0..<0x20 where byte != 0x09 && byte != 0x0A && byte != 0x0D:
                throw TreeSyntaxError("Parse error: control character in a string.", at: offset)
            default:
                string.bytes.append(byte)
                offset += 1
            }
        }
        throw TreeSyntaxError("Parse error: unterminated string.", at: start)
    }

    private mutating func escape(into string: inout RulesText) throws(TreeSyntaxError) {
        let start = offset
        let kind = offset + 1 < source.count ? source[offset + 1] : nil
        guard let kind else {
            throw TreeSyntaxError("Parse error: unterminated string.", at: start)
        }
        var index = offset + 1
        let scalar: Unicode.Scalar
        do throws(JSONError) {
            scalar = try source.withUnsafeBufferPointer { (bytes) throws(JSONError) in
                try JSONEscape.read(UnsafeRawBufferPointer(bytes), &index)
            }
        } catch {
            throw TreeSyntaxError(
                kind == UInt8(ascii: "u")
                    ? "Parse error: illegal \\u escape."
                    : "Parse error: illegal escape; a backslash is written \\\\.", at: start)
        }
        offset = index
        var utf8: [UInt8] = []
        JSONTokens.append(scalar, to: &utf8)
        string.append(escaped: utf8, endingAt: offset)
    }
}
