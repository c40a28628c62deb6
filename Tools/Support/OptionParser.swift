/// One option of a command.
package struct Option: Sendable {
    /// The name after the two hyphens.
    package let name: String
    /// The placeholder of its value in the help, in brackets when the value may be left out; nil for an option without one.
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

    /// Whether it may have no value, which is empty then.
    var isValueOptional: Bool { value?.hasPrefix("[") ?? false }

    /// Whether its value is the path of a file.
    package var isFile: Bool { value == "FILE" }

    /// Whether its value is the path of a folder.
    var isFolder: Bool { value == "FOLDER" || value == "[FOLDER]" }

    /// The values that there are, of an option that has a few; else empty.
    var choices: [String] {
        guard let value, value.contains("|") else { return [] }
        return value.split(separator: "|").map(String.init)
    }

    /// Its aliases of one letter, which are used with one hyphen.
    var letters: [String] { aliases.filter { $0.utf8.count == 1 } }

    /// The first sentence of its help.
    var summary: String {
        guard let end = help.firstRange(of: ". ") else { return help }
        return String(help[..<end.lowerBound]) + "."
    }

    /// `tlsCert`
    package var memberName: String {
        let words = name.split(separator: "-")
        return words.dropFirst().reduce(String(words[0])) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
    }
}
