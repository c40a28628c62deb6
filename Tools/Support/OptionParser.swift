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

    /// `tlsCert`
    package var memberName: String {
        let words = name.split(separator: "-")
        return words.dropFirst().reduce(String(words[0])) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
    }
}
