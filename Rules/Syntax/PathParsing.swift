/// Parses paths of matches and paths in expressions. They are read byte by byte, because characters that are operators
/// elsewhere may be part of a segment.
extension Parser {
    // MARK: Match paths

    mutating func matchPath() throws(Failure) -> [MatchSegment] {
        guard isAt(.slash) else { throw unexpected() }
        var segments: [MatchSegment] = []
        var position = Int(token.range.start)
        var next: Int?
        repeat {
            position += 1
            if lexer.byte(position) == UInt8(ascii: "{") {
                // `match /a/ {` is a path with an extra slash before its block.
                guard beginsCapture(position) else {
                    issues.error(Self.danglingSlash, at: SourceRange(position - 1, position))
                    break
                }
                let segment = try capture(at: position)
                segments.append(segment)
                position = Int(segment.range.end)
            } else {
                let (string, end) = try segmentString(at: position, isPartOfMatch: true)
                segments.append(MatchSegment(kind: .string(string), range: SourceRange(position - 1, end)))
                position = end
            }
            next = slash(after: position)
            position = next ?? position
        } while next != nil
        moveTo(position)
        return segments
    }

    private static let danglingSlash = "Forward slash '/' found where identifier or binding expected."

    private func beginsCapture(_ position: Int) -> Bool {
        var ahead = lexer
        ahead.position = position + 1
        let name = ahead.next()
        guard case .identifier = name.kind, !name.isStatementWord else { return false }
        let next = ahead.next()
        return next.isSymbol(.rightBrace) || next.isSymbol(.glob) || next.isSymbol(.single)
    }

    private mutating func capture(at position: Int) throws(Failure) -> MatchSegment {
        moveTo(position + 1)
        let (name, _) = try identifier()
        let isGlob = take(.glob)
        if !isGlob { _ = take(.single) }
        guard isAt(.rightBrace) else { throw unexpected() }
        let range = SourceRange(position - 1, Int(token.range.end))
        return MatchSegment(kind: isGlob ? .glob(name) : .capture(name), range: range)
    }

    // MARK: Paths in expressions

    mutating func path() throws(Failure) -> Expression {
        let start = Int(token.range.start)
        var position = start
        var parts: [PathPart] = []
        var next: Int?
        repeat {
            position += 1
            switch (lexer.byte(position), lexer.byte(position + 1)) {
            case (UInt8(ascii: "$"), UInt8(ascii: "(")):
                moveTo(position + 2)
                parts.append(.interpolation(try expression()))
                guard isAt(.rightParenthesis) else { throw unexpected() }
                position = Int(token.range.end)
            case (UInt8(ascii: "{"), _):
                moveTo(position + 1)
                let (name, range) = try identifier()
                parts.append(.placeholder(name, range))
                // A path in an expression has no wildcards; the value of one would be unknown.
                if !take(.glob) { _ = take(.single) }
                guard isAt(.rightBrace) else { throw unexpected() }
                position = Int(token.range.end)
            default:
                let (string, end) = try segmentString(at: position, isPartOfMatch: false)
                parts.append(.string(string))
                position = end
            }
            next = slash(after: position)
            position = next ?? position
        } while next != nil
        let end = position
        moveTo(position)
        return try make(.path(parts), SourceRange(start, end))
    }

    /// The position of the slash of a further segment, also after white space; nil when the path ends.
    private func slash(after position: Int) -> Int? {
        var ahead = lexer
        ahead.position = position
        ahead.skipSpace()
        let next = ahead.position
        guard ahead.byte(next) == UInt8(ascii: "/") else { return nil }
        return next == position || beginsSegment(next + 1) ? next : nil
    }

    /// Whether a `/` before the position begins a path and is not a division.
    func beginsSegment(_ position: Int) -> Bool {
        let byte = lexer.byte(position)
        if byte == UInt8(ascii: "$") { return lexer.byte(position + 1) == UInt8(ascii: "(") }
        if byte == UInt8(ascii: "(") { return parenthesized(position) != nil }
        return Self.isSegmentByte(byte, isPartOfMatch: false)
    }

    /// The position after `(string)`.
    private func parenthesized(_ position: Int) -> Int? {
        var end = position + 1
        while Self.isSegmentByte(lexer.byte(end), isPartOfMatch: false) { end += 1 }
        return lexer.byte(end) == UInt8(ascii: ")") && end > position + 1 ? end + 1 : nil
    }

    private mutating func segmentString(at position: Int, isPartOfMatch: Bool) throws(Failure) -> (String, end: Int) {
        var end = position
        if lexer.byte(position) == UInt8(ascii: "("), let closed = parenthesized(position) {
            end = closed
        } else {
            while true {
                if Self.isSegmentByte(lexer.byte(end), isPartOfMatch: isPartOfMatch) {
                    end += 1
                } else if lexer.byte(end) == UInt8(ascii: "%"), Self.isHexDigit(lexer.byte(end + 1)),
                    Self.isHexDigit(lexer.byte(end + 2))
                {
                    end += 3
                } else {
                    break
                }
            }
        }
        if end == position {
            issues.error(Self.danglingSlash, at: SourceRange(position - 1, position))
            moveTo(position)
            throw Failure()
        }
        return (lexer.string(SourceRange(position, end)), end)
    }

    /// A path of an expression ends at an operator; match paths contain no operators.
    private static func isSegmentByte(_ byte: UInt8, isPartOfMatch: Bool) -> Bool {
        if Lexer.isNameStart(byte) || Lexer.isDigit(byte) { return true }
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "@"): return true
        case UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ":"):
            return isPartOfMatch
        default: return false
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        Lexer.isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
    }

    private mutating func moveTo(_ position: Int) {
        lexer.position = position
        advance()
    }
}
