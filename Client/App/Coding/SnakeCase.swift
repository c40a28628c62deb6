/// Converts between `oneTwoThree` and `one_two_three`.
enum SnakeCase {
    /// Inserts an underscore before each word. A run of capitals is one word, except for its last letter when a small
    /// letter follows: `myURLProperty` has the words my, URL, Property.
    static func from(camel name: String) -> String {
        let letters = Array(name)
        var result = ""
        for (index, letter) in letters.enumerated() {
            if letter.isUppercase, index > 0, letters[index - 1] != "_" {
                let afterCapital = letters[index - 1].isUppercase
                let beforeSmall = index + 1 < letters.count && letters[index + 1].isLowercase
                if !afterCapital || beforeSmall { result += "_" }
            }
            result += letter.lowercased()
        }
        return result
    }

    /// Leading and trailing underscores remain.
    static func toCamel(_ name: String) -> String {
        let leading = name.prefix { $0 == "_" }
        if leading.count == name.count { return name }
        let trailing = String(name.reversed().prefix { $0 == "_" })
        let words = name.dropFirst(leading.count).dropLast(trailing.count).split(separator: "_")
        guard words.count > 1 else { return name }
        let joined = words[0].lowercased() + words.dropFirst().map(\.capitalized).joined()
        return leading + joined + trailing
    }
}
