import HearthJSON
import HearthModel

/// Counts the results of a ruleset's expressions: it shows expressions that were never evaluated, or that always had
/// the same result.
///
/// It is an observer of `Ruleset.decide` and belongs to one thread.
package final class RulesCoverage: RulesObserver {
    /// A result of an expression, and its count.
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
    /// The number of evaluations whose values exceed the bounds for one expression.
    private var others: [Int]
    /// The number of evaluations of each expression.
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

    /// The results of an expression, in the order of their first occurrence.
    /// - Parameter id: the position in `Ruleset.expressions`.
    package func counts(of id: Int) -> [Count] { entries[id].map(\.count) }

    /// The number of evaluations of an expression.
    package func evaluations(of id: Int) -> Int {
        totals[id]
    }

    // MARK: Reports

    /// A readable report: the expressions that were never evaluated, and the results of each condition.
    package var string: String {
        var lines: [String] = []
        let reached = ruleset.expressions.filter { evaluations(of: $0.id) > 0 }.count
        lines.append("\(reached) of \(ruleset.expressions.count) expressions evaluated")
        let source = Array(ruleset.source.utf8)
        for expression in ruleset.expressions {
            let count = evaluations(of: expression.id)
            let parentCount = expression.parent.map { evaluations(of: $0) }
            // When an expression was never evaluated, its parts are not listed.
            if count == 0, parentCount == 0 { continue }
            if count > 0, expression.parent != nil { continue }
            let code = String(decoding: source[expression.startOffset..<expression.endOffset], as: UTF8.self)
            let position = "\(expression.line):\(expression.column)"
            let values = entries[expression.id].map { "\($0.count.value) ×\($0.count.count)" }.joined(separator: ", ")
            lines.append("\(position)  \(count == 0 ? "never" : values)  \(Self.line(code))")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Code on one line, truncated.
    static func line(_ code: String) -> String {
        let words = code.split { $0 == " " || $0 == "\n" || $0 == "\t" || $0 == "\r" }.joined(separator: " ")
        return words.utf8.count > 100 ? String(words.prefix(99)) + "…" : words
    }

    /// The response of the emulator's `ruleCoverage`.
    /// - Parameter fileName: the name of the loaded source.
    package func json(fileName: String = "security.rules") -> String {
        var children: [Int?: [Int]] = [:]
        for expression in ruleset.expressions { children[expression.parent, default: []].append(expression.id) }
        let report = (children[nil] ?? []).map { self.report($0, children, fileName) }.joined(separator: ",")
        return "{\"rules\":{\"files\":[{\"name\":\(JSONString.quoted(fileName)),\"content\":"
            + "\(JSONString.quoted(ruleset.source))}]},\"report\":[\(report)]}"
    }

    /// The recursion depth is that of an expression, which is bounded.
    private func report(_ id: Int, _ children: [Int?: [Int]], _ fileName: String) -> String {
        let expression = ruleset.expressions[id]
        // Google's offsets are inclusive, and count characters.
        var string =
            "{\"sourcePosition\":{\"fileName\":\(JSONString.quoted(fileName)),\"line\":\(expression.line),"
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

/// A string as JSON.
enum JSONString {
    static func quoted(_ string: String) -> String {
        var bytes: [UInt8] = []
        JSONTokens.append(string, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
