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
