import HearthRules
import HearthWire

/// Records the values of expressions, as far as a case of a test asks for them (`expressionReportLevel`).
final class RulesVisits: RulesObserver {
    private struct Visit {
        var line: Int
        var column: Int
        var value: String
    }

    /// Distinct values of one expression; further ones are counted together with the last.
    private static let valuesMax = 100

    private let level: RulesCase.ReportLevel
    private let ruleset: Ruleset
    private var visits: [Visit] = []
    private var counts: [[(value: String, count: Int)]]

    init(_ ruleset: Ruleset, level: RulesCase.ReportLevel) {
        self.ruleset = ruleset
        self.level = level
        counts = level == .full ? Array(repeating: [], count: ruleset.expressions.count) : []
    }

    func didEvaluate(_ expression: RulesExpression, _ result: RulesResult) {
        switch level {
        case .none: return
        case .visited:
            visits.append(Visit(line: expression.line, column: expression.column, value: result.plainJSON))
        case .full:
            let value = result.plainJSON
            if let known = counts[expression.id].firstIndex(where: { $0.value == value }) {
                counts[expression.id][known].count += 1
            } else if counts[expression.id].count < Self.valuesMax {
                counts[expression.id].append((value, 1))
            } else {
                counts[expression.id][Self.valuesMax - 1].count += 1
            }
        }
    }

    /// - Parameter position: appends a position in the source.
    func append(to writer: inout JSONWriter, _ position: (Int, Int, inout JSONWriter) -> Void) {
        switch level {
        case .none: return
        case .visited:
            writer.raw(",\"visitedExpressions\":[")
            for (index, visit) in visits.enumerated() {
                writer.raw(index > 0 ? ",{\"sourcePosition\":" : "{\"sourcePosition\":")
                position(visit.line, visit.column, &writer)
                writer.raw(",\"value\":\(visit.value)}")
            }
            writer.raw("]")
        case .full:
            var children: [Int?: [Int]] = [:]
            for expression in ruleset.expressions where !counts[expression.id].isEmpty {
                children[expression.parent, default: []].append(expression.id)
            }
            writer.raw(",\"expressionReports\":")
            report(children[nil] ?? [], children, to: &writer, position)
        }
    }

    /// The recursion's depth is that of an expression, which is bounded.
    private func report(
        _ ids: [Int], _ children: [Int?: [Int]], to writer: inout JSONWriter,
        _ position: (Int, Int, inout JSONWriter) -> Void
    ) {
        writer.raw("[")
        for (index, id) in ids.enumerated() {
            writer.raw(index > 0 ? ",{\"sourcePosition\":" : "{\"sourcePosition\":")
            position(ruleset.expressions[id].line, ruleset.expressions[id].column, &writer)
            writer.raw(",\"values\":[")
            for (index, entry) in counts[id].enumerated() {
                writer.raw("\(index > 0 ? "," : ""){\"value\":\(entry.value),\"count\":\(entry.count)}")
            }
            writer.raw("]")
            if let inner = children[id] {
                writer.raw(",\"children\":")
                report(inner, children, to: &writer, position)
            }
            writer.raw("}")
        }
        writer.raw("]")
    }
}
