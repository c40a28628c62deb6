import HearthHost

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
            } else if option.isValueOptional, index == words.count || words[index].hasPrefix("-") {
                values[option.name] = ""
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
