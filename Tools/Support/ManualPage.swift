/// A manual page in the format of man, from the same table and words as the help.
package struct ManualPage {
    /// The page so far.
    package private(set) var string = ""
    private var isAfterHeading = false

    /// - Parameter date: the date in the last line, as YYYY-MM-DD.
    package init(program: String, version: String, date: String, summary: String) {
        line(".\\\" Printed by `\(program) manual`.")
        line(
            ".TH \(program.uppercased()) 1 \(date) \"\(program) \(version)\" \"User Commands\""
        )
        section("NAME")
        line("\(Self.escape(program)) \\- \(Self.escape(summary))")
    }

    package mutating func section(_ title: String) { line(".SH \(title)") }

    /// A term and what it is.
    package mutating func item(_ term: String, _ description: String) {
        line(".TP")
        line("\\fB\(Self.escape(term))\\fR")
        filled(description)
    }

    /// A command with its usage, what its help says, and its options.
    package mutating func command(_ command: ToolCommand) {
        line(".SS \(Self.escape(command.name))")
        line(Self.guarded(Self.inline(command.summary)))
        let help = command.help()
        let table = OptionHelp.string(command.options)
        guard !command.options.isEmpty, let range = help.firstRange(of: table) else { return prose(paragraphs(help)) }
        prose(paragraphs(String(help[..<range.lowerBound])))
        for option in command.options { self.option(option) }
        prose(paragraphs(String(help[range.upperBound...])))
    }

    private mutating func option(_ option: Option) {
        let names = option.letters.map { "-" + $0 } + ["--" + option.name]
        let value = option.value.map { " \\fI\(Self.escape($0))\\fR" } ?? ""
        line(".TP")
        line("\\fB\(Self.escape(names.joined(separator: ", ")))\\fR\(value)")
        filled(option.help)
    }

    // MARK: Prose

    private func paragraphs(_ help: String) -> [String] {
        help.split(separator: "\n\n").map { $0.trimmingLineEnds() }.filter { !$0.isEmpty }
    }

    /// Paragraphs of a help: lists of words with their explanations, examples, which are indented by four spaces, and sentences.
    package mutating func prose(_ paragraphs: [String]) {
        for paragraph in paragraphs {
            var lines = paragraph.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            if lines[0].hasPrefix("Usage: ") {
                let indent = "Usage: ".count
                lines = lines.map { "    " + $0.dropFirst(indent) }
            }
            if let items = Self.items(lines) {
                for item in items { self.item(item.term, item.description) }
                continue
            }
            beginParagraph()
            var index = 0
            while index < lines.count {
                let isExample = Self.isExample(lines[index])
                var end = index
                while end < lines.count, Self.isExample(lines[end]) == isExample { end += 1 }
                if isExample { example(lines[index..<end]) } else { filled(lines[index..<end].joined(separator: " ")) }
                index = end
            }
        }
    }

    private mutating func example(_ lines: ArraySlice<String>) {
        line(".RS 4")
        line(".EX")
        for line in lines { self.line(Self.guarded(Self.escape(String(line.dropFirst(4))))) }
        line(".EE")
        line(".RE")
    }

    private static func isExample(_ line: String) -> Bool { line.hasPrefix("    ") }

    /// The items of `word  explanation` with lines that go on below the explanation; nil when it is another paragraph.
    private static func items(_ lines: [String]) -> [(term: String, description: String)]? {
        guard let first = lines.first, let (term, width) = head(first) else { return nil }
        var items = [(term: term, description: String(first.dropFirst(width)))]
        for line in lines.dropFirst() {
            if let (term, width) = head(line) {
                items.append((term: term, description: String(line.dropFirst(width))))
            } else if isExample(line) {
                items[items.count - 1].description += " " + line.drop { $0 == " " }
            } else {
                return nil
            }
        }
        return items
    }

    /// A word at the beginning of a line that two or more spaces follow, and where what is behind them begins.
    private static func head(_ line: String) -> (term: String, width: Int)? {
        let term = line.prefix { $0 != " " }
        let spaces = line.dropFirst(term.count).prefix { $0 == " " }.count
        let width = term.count + spaces
        return !term.isEmpty && spaces >= 2 && width < line.count ? (String(term), width) : nil
    }

    /// Sentences, in lines of at most 80 bytes where words allow it, as the format's style wants.
    private mutating func filled(_ sentences: String) {
        var current = ""
        for word in sentences.split(separator: " ") {
            let longer = current.isEmpty ? String(word) : current + " " + word
            if !current.isEmpty, Self.inline(longer).utf8.count > 78 {
                line(Self.guarded(Self.inline(current)))
                current = String(word)
            } else {
                current = longer
            }
        }
        if !current.isEmpty { line(Self.guarded(Self.inline(current))) }
    }

    private mutating func line(_ line: String) {
        string += line + "\n"
        isAfterHeading = line.hasPrefix(".SH ") || line.hasPrefix(".SS ")
    }

    /// What follows a heading is a paragraph without this request.
    private mutating func beginParagraph() { if !isAfterHeading { line(".PP") } }

    /// A line that is no request, whatever it begins with.
    private static func guarded(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" + line : line
    }

    /// Escaped, with what backquotes enclose in bold.
    private static func inline(_ string: String) -> String {
        let parts = string.split(separator: "`", omittingEmptySubsequences: false).map { escape(String($0)) }
        guard parts.count % 2 == 1 else { return escape(string) }
        return parts.enumerated().map { $0.offset % 2 == 0 ? $0.element : "\\fB\($0.element)\\fR" }.joined()
    }

    /// The format's own characters, and those that it would replace by typographic ones: what is copied must work.
    private static func escape(_ string: String) -> String {
        string.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "`": result += "\\(ga"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case "\"": result += "\\(dq"
            default:
                if scalar.isASCII {
                    result.unicodeScalars.append(scalar)
                } else {
                    let digits = String(scalar.value, radix: 16, uppercase: true)
                    result += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
                }
            }
        }
    }
}

extension Substring {
    fileprivate func trimmingLineEnds() -> String {
        var rest = self.drop { $0 == "\n" }
        while rest.last == "\n" { rest = rest.dropLast() }
        return String(rest)
    }
}
