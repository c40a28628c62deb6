import HearthHost

/// One option of a command.
package struct Option: Sendable {
    /// The name after the two hyphens.
    package let name: String
    /// The placeholder of its value in the help; nil for an option without one.
    let value: String?
    let help: String
    /// Other spellings, including those of Google's emulator.
    var aliases: [String] = []
    /// Whether it may be repeated: then hearth.json may have a list.
    package var isRepeated = false

    package init(
        _ name: String, _ value: String? = nil, aliases: [String] = [], isRepeated: Bool = false, _ help: String
    ) {
        self.isRepeated = isRepeated
        self.name = name
        self.value = value
        self.aliases = aliases
        self.help = help
    }

    /// `HEARTH_TLS_CERT`
    package var environmentName: String {
        "HEARTH_"
            + String(decoding: name.utf8.map { $0 == UInt8(ascii: "-") ? UInt8(ascii: "_") : $0 & 0xDF }, as: UTF8.self)
    }

    /// Whether its value is the path of a file.
    package var isFile: Bool { value == "FILE" }

    /// `tlsCert`
    package var memberName: String {
        let words = name.split(separator: "-")
        return words.dropFirst().reduce(String(words[0])) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
    }
}

/// The parsed arguments of a command line.
package struct ParsedOptions: Sendable {
    /// By the option's proper name. An option without a value has an empty one; `--no-x` has "false".
    package var values: [String: String] = [:]
    /// All values of options that may be repeated, in order; `values` has the last one.
    private var repeated: [(name: String, value: String)] = []
    /// Arguments that are not options, in order.
    package var arguments: [String] = []

    /// Parses `--name value`, `--name=value`, `--flag`, `--no-flag`; after `--` all arguments are not options.
    /// - Parameter argumentsMax: the maximum number of arguments that are not options.
    package init(_ words: [String], options: [Option], argumentsMax: Int = 0) throws(ToolFailure) {
        var index = 0
        var isOver = false
        while index < words.count {
            let word = words[index]
            index += 1
            if isOver || !word.hasPrefix("-") || word == "-" {
                if arguments.count >= argumentsMax { throw .usage("Unexpected argument \"\(word)\".") }
                arguments.append(word)
                continue
            }
            if word == "--" {
                isOver = true
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let (option, isNegated) = try Self.find(parts[0], options)
            if isNegated {
                values[option.name] = "false"
            } else if option.value == nil {
                values[option.name] = parts.count > 1 ? parts[1] : ""
            } else if parts.count > 1 {
                values[option.name] = parts[1]
                repeated.append((option.name, parts[1]))
            } else if index < words.count {
                values[option.name] = words[index]
                repeated.append((option.name, words[index]))
                index += 1
            } else {
                throw .usage("The option --\(option.name) needs a value: --\(option.name) \(option.value ?? "").")
            }
        }
    }

    private static func find(_ word: String, _ options: [Option]) throws(ToolFailure) -> (Option, isNegated: Bool) {
        // Google's emulator uses underscores.
        let name = word.drop { $0 == "-" }.split(separator: "_", omittingEmptySubsequences: false).joined(
            separator: "-")
        // A single letter after a single hyphen is an option where it is an alias.
        if word.hasPrefix("--") || name.utf8.count == 1 {
            if let option = options.first(where: { $0.name == name || $0.aliases.contains(name) }) {
                return (option, false)
            }
            if name.hasPrefix("no-"),
                let option = options.first(where: { $0.name == name.dropFirst(3) && $0.value == nil })
            {
                return (option, true)
            }
        }
        let known = options.flatMap { [$0.name] + $0.aliases }
        let nearest = Spelling.nearest(to: name, among: known)
        throw .usage("Unknown option \(word)\(nearest.map { "; did you mean --\($0)?" } ?? ".")")
    }

    // MARK: Typed values

    package func integer(_ name: String, _ range: ClosedRange<Int>, default fallback: Int) throws(ToolFailure) -> Int {
        guard let string = values[name] else { return fallback }
        guard let number = Int(string), range.contains(number) else {
            throw .usage(
                "--\(name) expects a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(string)\".")
        }
        return number
    }

    package func number(_ name: String, _ range: ClosedRange<Double>, default fallback: Double) throws(ToolFailure)
        -> Double
    {
        guard let string = values[name] else { return fallback }
        guard let number = Double(string), range.contains(number) else {
            throw .usage(
                "--\(name) expects a number from \(range.lowerBound) to \(range.upperBound), not \"\(string)\".")
        }
        return number
    }

    package func string(_ name: String) -> String? { values[name] }

    /// All values of an option that may be repeated.
    package func strings(_ name: String) -> [String] { repeated.filter { $0.name == name }.map(\.value) }

    package func flag(_ name: String) -> Bool { values[name].map { $0 != "false" } ?? false }
}

/// Formats options for the help.
package enum OptionHelp {
    package static func string(_ options: [Option]) -> String {
        let heads = options.map { "--\($0.name)" + ($0.value.map { " \($0)" } ?? "") }
        let width = (heads.map(\.count).max() ?? 0) + 4
        return zip(heads, options).map { head, option in
            let lines = wrap(option.help, width: 100 - width)
            let indent = String(repeating: " ", count: width)
            let first =
                "  " + head + String(repeating: " ", count: max(1, width - 2 - head.count)) + (lines.first ?? "")
            return ([first] + lines.dropFirst().map { indent + $0 }).joined(separator: "\n")
        }.joined(separator: "\n")
    }

    private static func wrap(_ string: String, width: Int) -> [String] {
        var lines: [String] = [""]
        for word in string.split(separator: " ") {
            if !lines[lines.count - 1].isEmpty, lines[lines.count - 1].count + 1 + word.count > width {
                lines.append("")
            }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
        }
        return lines
    }
}
