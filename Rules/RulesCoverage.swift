import HearthModel

/// Counts what the expressions of a ruleset came to: which were never evaluated, and which never came out otherwise.
///
/// It is fed by `Ruleset.decide` as an observer and belongs to one thread.
package final class RulesCoverage: RulesObserver {
    /// A value that an expression came to, and how often.
    package struct Count: Sendable, Equatable {
        package var value: String
        package var isError: Bool
        package var count: Int
    }

    private struct Entry {
        var json: String
        var count: Count
    }

    private let ruleset: Ruleset
    private var entries: [[Entry]]
    /// Evaluations whose values are beyond the bounds for one expression.
    private var others: [Int]
    /// How often an expression was evaluated.
    private var totals: [Int]

    package init(_ ruleset: Ruleset) {
        self.ruleset = ruleset
        entries = Array(repeating: [], count: ruleset.expressions.count)
        others = Array(repeating: 0, count: ruleset.expressions.count)
        totals = others
    }

    package func didEvaluate(_ expression: RulesExpression, _ result: RulesResult) {
        guard entries.indices.contains(expression.id) else { return }
        totals[expression.id] += 1
        guard totals[expression.id] <= RulesLimits.coverageDetailedMax || result.isBool else {
            others[expression.id] += 1
            return
        }
        let json = result.json
        if let known = entries[expression.id].firstIndex(where: { $0.json == json }) {
            entries[expression.id][known].count.count += 1
        } else if entries[expression.id].count < RulesLimits.coverageValuesMax {
            let count = Count(value: result.string, isError: result.isError, count: 1)
            entries[expression.id].append(Entry(json: json, count: count))
        } else {
            others[expression.id] += 1
        }
    }

    /// What an expression came to, in the order in which the values first came.
    /// - Parameter id: the position in `Ruleset.expressions`.
    package func counts(of id: Int) -> [Count] { entries[id].map(\.count) }

    /// How often an expression was evaluated.
    package func evaluations(of id: Int) -> Int {
        totals[id]
    }

    // MARK: Reports

    /// For people: what was never evaluated, and what each condition came to.
    package var string: String {
        var lines: [String] = []
        let reached = ruleset.expressions.filter { evaluations(of: $0.id) > 0 }.count
        lines.append("\(reached) of \(ruleset.expressions.count) expressions evaluated")
        let source = Array(ruleset.source.utf8)
        for expression in ruleset.expressions {
            let count = evaluations(of: expression.id)
            let parentCount = expression.parent.map { evaluations(of: $0) }
            // Of what was never reached, the outermost part says it all.
            if count == 0, parentCount == 0 { continue }
            if count > 0, expression.parent != nil { continue }
            let code = String(decoding: source[expression.startOffset..<expression.endOffset], as: UTF8.self)
            let place = "\(expression.line):\(expression.column)"
            let values = entries[expression.id].map { "\($0.count.value) ×\($0.count.count)" }.joined(separator: ", ")
            lines.append("\(place)  \(count == 0 ? "never" : values)  \(Self.line(code))")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Code on one line, cut.
    static func line(_ code: String) -> String {
        let words = code.split { $0 == " " || $0 == "\n" || $0 == "\t" || $0 == "\r" }.joined(separator: " ")
        return words.utf8.count > 100 ? String(words.prefix(99)) + "…" : words
    }

    /// The answer of the emulator's `ruleCoverage`.
    /// - Parameter fileName: the name under which the source was loaded.
    package func json(fileName: String = "security.rules") -> String {
        var children: [Int?: [Int]] = [:]
        for expression in ruleset.expressions { children[expression.parent, default: []].append(expression.id) }
        let report = (children[nil] ?? []).map { self.report($0, children, fileName) }.joined(separator: ",")
        return "{\"rules\":{\"files\":[{\"name\":\(JSONText.quoted(fileName)),\"content\":"
            + "\(JSONText.quoted(ruleset.source))}]},\"report\":[\(report)]}"
    }

    /// The depth is that of an expression, which has a bound.
    private func report(_ id: Int, _ children: [Int?: [Int]], _ fileName: String) -> String {
        let expression = ruleset.expressions[id]
        // Google's offsets are inclusive, and count characters.
        var string =
            "{\"sourcePosition\":{\"fileName\":\(JSONText.quoted(fileName)),\"line\":\(expression.line),"
            + "\"column\":\(expression.column),\"currentOffset\":\(expression.startOffset),"
            + "\"endOffset\":\(max(expression.endOffset - 1, expression.startOffset))}"
        if !entries[id].isEmpty {
            let values = entries[id].map { "{\"value\":\($0.json),\"count\":\($0.count.count)}" }
            string += ",\"values\":[\(values.joined(separator: ","))]"
        }
        if let inner = children[id] {
            string += ",\"children\":[\(inner.map { report($0, children, fileName) }.joined(separator: ","))]"
        }
        return string + "}"
    }
}

/// Writing of JSON.
enum JSONText {
    static func quoted(_ string: String) -> String {
        var quoted = "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            default:
                if scalar.value < 0x20 || scalar.value == 0x2028 || scalar.value == 0x2029 {
                    let digits = String(scalar.value, radix: 16)
                    quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                } else {
                    quoted.unicodeScalars.append(scalar)
                }
            }
        }
        return quoted + "\""
    }
}
