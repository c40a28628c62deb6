import HearthRules

/// A report of coverage as a page.
package enum RulesCoveragePage {
    package static func html(_ coverage: RulesCoverage) -> String {
        let string = coverage.string.reduce(into: "") { result, character in
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.append(character)
            }
        }
        return "<!DOCTYPE html><meta charset=\"utf-8\"><title>Coverage of security rules</title><pre>\(string)</pre>\n"
    }
}
