import CRE2

/// A pattern of RE2: matching takes time linear in the string, for any pattern.
///
/// `@unchecked Sendable`: RE2's objects may be used by several threads at once, and this one never changes.
package final class RegularExpression: @unchecked Sendable {
    private let expression: OpaquePointer
    /// Capturing groups.
    let groupCount: Int

    /// Nil when RE2 rejects the pattern, or it is too large.
    /// - Parameter isLiteral: whether it is a literal in the rules. Other patterns may come from a client.
    package convenience init?(_ pattern: String, isLiteral: Bool) {
        if !isLiteral, pattern.utf8.count > RulesLimits.dynamicPatternBytesMax { return nil }
        self.init(
            pattern,
            memoryBytes: isLiteral ? RulesLimits.patternMemoryBytesMax : RulesLimits.dynamicPatternMemoryBytesMax)
    }

    /// Nil when RE2 rejects the pattern, or it takes more memory.
    init?(_ pattern: String, memoryBytes: Int) {
        var pattern = pattern
        let compiled = pattern.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                hearth_re2_new(characters.baseAddress, characters.count, memoryBytes)
            }
        }
        guard let compiled else { return nil }
        expression = compiled
        groupCount = Int(hearth_re2_groups(compiled))
    }

    deinit {
        hearth_re2_free(expression)
    }

    /// Whether the whole string matches.
    package func matches(_ string: String) -> Bool {
        var string = string
        return string.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                hearth_re2_matches(expression, characters.baseAddress, characters.count)
            }
        }
    }

    /// Whether a part of the string matches.
    func isFound(in string: String) -> Bool {
        var string = string
        var span = (0, 0)
        return string.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                withUnsafeMutablePointer(to: &span) { pointer in
                    pointer.withMemoryRebound(to: Int.self, capacity: 2) { spans in
                        hearth_re2_find(expression, characters.baseAddress, characters.count, 0, spans, 0)
                    }
                }
            }
        }
    }

    /// Calls `body` with the ranges of each match: the whole and each group, nil for a group that did not participate.
    /// An empty match may directly follow another match. `body` returns false to stop.
    func eachMatch(in string: UnsafeBufferPointer<UInt8>, _ body: ([Range<Int>?]) -> Bool) {
        var spans = [Int](repeating: -1, count: 2 * (groupCount + 1))
        var start = 0
        string.withMemoryRebound(to: CChar.self) { characters in
            while start <= string.count {
                guard
                    hearth_re2_find(
                        expression, characters.baseAddress, characters.count, start, &spans, Int32(groupCount))
                else { return }
                let ranges = (0...groupCount).map { group in
                    spans[2 * group] < 0 ? nil : spans[2 * group]..<spans[2 * group + 1]
                }
                if !body(ranges) { return }
                let whole = spans[0]..<spans[1]
                start = whole.upperBound
                if whole.isEmpty {
                    start += 1
                    while start < string.count, string[start] & 0xC0 == 0x80 { start += 1 }
                }
            }
        }
    }

    // MARK: Replacing and splitting

    /// Replaces all matches. `$1` is a group, `$0` the whole match, and `\` quotes the next character.
    package func replacing(in string: String, with template: String) -> Replacement {
        guard let parts = Self.parse(template, groupCount: groupCount) else { return .invalidTemplate }
        var string = string
        return string.withUTF8 { bytes in
            var result: [UInt8] = []
            var end = 0
            var isTooLong = false
            eachMatch(in: bytes) { spans in
                guard let whole = spans[0] else { return false }
                result += bytes[end..<whole.lowerBound]
                for part in parts {
                    switch part {
                    case .string(let string): result += string
                    case .group(let group): if let span = spans[group] { result += bytes[span] }
                    }
                }
                end = whole.upperBound
                isTooLong = result.count > RulesLimits.stringSizeBytesMax
                return !isTooLong
            }
            if isTooLong { return .isTooLong }
            result += bytes[end...]
            return .string(String(decoding: result, as: UTF8.self))
        }
    }

    package enum Replacement {
        case string(String)
        case invalidTemplate
        case isTooLong
    }

    private enum Part {
        case string([UInt8])
        case group(Int)
    }

    private static func parse(_ template: String, groupCount: Int) -> [Part]? {
        var parts: [Part] = []
        var literal: [UInt8] = []
        var bytes = Array(template.utf8)[...]
        while let byte = bytes.popFirst() {
            if byte == UInt8(ascii: "\\") {
                if let quoted = bytes.popFirst() { literal.append(quoted) }
            } else if byte == UInt8(ascii: "$"), let digit = bytes.first, Lexer.isDigit(digit) {
                var group = Int(digit - UInt8(ascii: "0"))
                if group > groupCount { return nil }
                bytes.removeFirst()
                // More digits belong to the number while such a group exists.
                while let next = bytes.first, Lexer.isDigit(next) {
                    let larger = group * 10 + Int(next - UInt8(ascii: "0"))
                    if larger > groupCount { break }
                    group = larger
                    bytes.removeFirst()
                }
                if !literal.isEmpty { parts.append(.string(literal)) }
                literal = []
                parts.append(.group(group))
            } else {
                literal.append(byte)
            }
        }
        if !literal.isEmpty { parts.append(.string(literal)) }
        return parts
    }

    /// The strings between matches, without empty ones at the end. Nil when there are too many.
    package func split(_ string: String) -> [String]? {
        if string.isEmpty { return [""] }
        var string = string
        return string.withUTF8 { bytes in
            var parts: [String] = []
            var end = 0
            eachMatch(in: bytes) { spans in
                guard let whole = spans[0], !(whole.isEmpty && whole.lowerBound == bytes.count) else { return false }
                parts.append(
                    String(decoding: UnsafeBufferPointer(rebasing: bytes[end..<whole.lowerBound]), as: UTF8.self))
                end = whole.upperBound
                return parts.count <= RulesLimits.elementsMax
            }
            if parts.count > RulesLimits.elementsMax { return nil }
            parts.append(String(decoding: UnsafeBufferPointer(rebasing: bytes[end...]), as: UTF8.self))
            while parts.count > 1, parts.last?.isEmpty ?? false { parts.removeLast() }
            return parts
        }
    }
}
