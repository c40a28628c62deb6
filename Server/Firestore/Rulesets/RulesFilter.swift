import HearthModel
import HearthWire

/// The filter of a list of rulesets or releases: `name=prod* AND create_time > date("2026-01-01T00:00:00Z")`.
///
/// Terms are joined by `AND` or white space. Names are relative to the project or full; a `*` at the end matches any rest.
/// Source: `filter` of both methods in the description of Google's API.
struct RulesFilter {
    enum List {
        case rulesets, releases

        var kind: String { self == .rulesets ? "rulesets" : "releases" }
    }

    private enum Term {
        case name(String, isPrefix: Bool)
        case ruleset(String, isPrefix: Bool)
        case created(String, Timestamp)
    }

    private var terms: [Term] = []

    /// - Throws: INVALID_ARGUMENT with the term that isn't understood.
    init(_ string: String, of list: List, project: String) throws(Status) {
        if string.utf8.count > Limits.rulesNamesBytesMax {
            throw .invalidArgument("A filter has at most \(Limits.rulesNamesBytesMax) bytes.")
        }
        var rest = string[...]
        while true {
            rest = rest.drop { $0.isWhitespace }
            if rest.isEmpty { return }
            if rest.hasPrefix("AND "), !terms.isEmpty {
                rest = rest.dropFirst(4)
                continue
            }
            terms.append(try Self.term(&rest, list, project))
        }
    }

    private static func term(_ rest: inout Substring, _ list: List, _ project: String) throws(Status) -> Term {
        let whole = rest
        func fault() -> Status {
            .invalidArgument(
                "The filter is not understood at \"\(whole.prefix(100))\": expected name=NAME, a name may end with *"
                    + (list == .rulesets ? ", or create_time > date(\"TIME\")." : ", or ruleset_name=NAME."))
        }
        let field = rest.prefix { $0.isLetter || $0 == "_" || $0 == "." }
        rest = rest.dropFirst(field.count).drop { $0.isWhitespace }
        let sign = rest.prefix { "<>=".contains($0) }
        rest = rest.dropFirst(sign.count).drop { $0.isWhitespace }
        switch (field, sign, list) {
        case ("name", "=", _), ("release.name", "=", .releases), ("ruleset.name", "=", .rulesets):
            return name(try word(&rest, fault), list.kind, project) { .name($0, isPrefix: $1) }
        case ("ruleset_name", "=", .releases), ("rulesetName", "=", .releases),
            ("release.ruleset_name", "=", .releases):
            return name(try word(&rest, fault), "rulesets", project) { .ruleset($0, isPrefix: $1) }
        case ("create_time", "<", .rulesets), ("create_time", "<=", .rulesets), ("create_time", "=", .rulesets),
            ("create_time", ">", .rulesets), ("create_time", ">=", .rulesets):
            guard rest.hasPrefix("date(\""), let end = rest.firstIndex(of: ")") else { throw fault() }
            let inner = rest[..<end].dropFirst(6)
            guard inner.hasSuffix("\""), let instant = RFC3339.parse(String(inner.dropLast())),
                let time = Timestamp(seconds: instant.seconds, nanoseconds: Int64(instant.nanoseconds))
            else { throw fault() }
            rest = rest[rest.index(after: end)...]
            return .created(String(sign), time)
        default: throw fault()
        }
    }

    private static func word(_ rest: inout Substring, _ fault: () -> Status) throws(Status) -> String {
        var word: Substring
        if rest.hasPrefix("\"") {
            guard let end = rest.dropFirst().firstIndex(of: "\"") else { throw fault() }
            word = rest[..<end].dropFirst()
            rest = rest[rest.index(after: end)...]
        } else {
            word = rest.prefix { !$0.isWhitespace }
            rest = rest.dropFirst(word.count)
        }
        if word.isEmpty { throw fault() }
        return String(word)
    }

    private static func name(
        _ word: String, _ kind: String, _ project: String, _ make: (String, Bool) -> Term
    ) -> Term {
        let prefix = "projects/\(project)/\(kind)/"
        let name = word.hasPrefix(prefix) ? String(word.dropFirst(prefix.count)) : word
        return name.hasSuffix("*") ? make(String(name.dropLast()), true) : make(name, false)
    }

    func matches(name: String, created: Timestamp, ruleset: String = "") -> Bool {
        func fits(_ string: String, _ wanted: String, _ isPrefix: Bool) -> Bool {
            isPrefix ? string.utf8.starts(with: wanted.utf8) : UTF8Order.equal(string, wanted)
        }
        return terms.allSatisfy { term in
            switch term {
            case .name(let wanted, let isPrefix): fits(name, wanted, isPrefix)
            case .ruleset(let wanted, let isPrefix): fits(ruleset, wanted, isPrefix)
            case .created("<", let time): created < time
            case .created("<=", let time): created <= time
            case .created("=", let time): created == time
            case .created(">", let time): created > time
            case .created(_, let time): created >= time
            }
        }
    }
}
