import HearthModel

/// Explains a decision: each evaluated rule, with the values of its expressions as a tree.
package final class RulesExplanation: RulesObserver {
    private let source: [UInt8]
    private var lines: [String] = []
    private var depth = 0
    /// The index of the line whose expression is being evaluated; nil beyond the bound.
    private var open: [Int?] = []

    package init(_ ruleset: Ruleset) {
        source = Array(ruleset.source.utf8)
    }

    /// One line for each expression, its operands below it.
    package var string: String { lines.map { $0 + "\n" }.joined() }

    private func append(_ line: String) -> Int? {
        if lines.count >= RulesLimits.explanationLinesMax { return nil }
        lines.append(String(repeating: "  ", count: depth) + line)
        return lines.count - 1
    }

    package func willEvaluate(allowAt line: Int, column: Int, method: RulesMethod) {
        depth = 0
        _ = append("allow \(method.rawValue) at \(line):\(column)")
        depth = 1
    }

    package func willEvaluate(_ expression: RulesExpression) {
        let code = String(decoding: source[expression.startOffset..<expression.endOffset], as: UTF8.self)
        open.append(append(RulesCoverage.line(code)))
        depth += 1
    }

    package func didEvaluate(_ expression: RulesExpression, _ result: RulesResult) {
        depth -= 1
        guard let line = open.popLast(), let line else { return }
        lines[line] += result.isError ? "  → error: \(result.string)" : "  → \(result.string)"
    }

    package func didEvaluate(_ outcome: RulesOutcome) {
        depth = 0
        let word =
            switch outcome.result {
            case .allowed: "allowed"
            case .denied: "denied"
            case .failed: "failed"
            }
        _ = append("\(word): \(outcome.string)")
    }

    package func didDebug(_ string: String, at line: Int) {
        _ = append("debug at line \(line): \(string)")
    }
}
