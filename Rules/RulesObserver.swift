import HearthModel

/// An expression of a ruleset and its location.
package struct RulesExpression: Sendable {
    /// The position in `Ruleset.expressions`.
    package let id: Int
    /// From 1, of the first character.
    package let line: Int
    package let column: Int
    /// In bytes of UTF-8 from the start of the source; the end is exclusive.
    let startOffset: Int
    package let endOffset: Int
    /// The expression of which this is an operand; nil for conditions, values of variables and results of functions.
    package let parent: Int?
}

/// The result of an expression, described on demand.
package struct RulesResult {
    let value: RuleValue
    let evaluation: Evaluation

    /// Whether it is true or false.
    var isBool: Bool { if case .bool = value { true } else { false } }

    /// Whether the expression has no value.
    package var isError: Bool { value.isError }

    /// The value in the syntax of rules, or the error message; long ones are truncated.
    package var string: String { evaluation.description(of: value) }
}

/// Is notified of each evaluated expression: for coverage and explanations.
package protocol RulesObserver: AnyObject {
    /// Called before the condition of an `allow` statement is evaluated.
    func willEvaluate(allowAt line: Int, column: Int, method: RulesMethod)
    /// Called before an expression is evaluated; its operands follow.
    func willEvaluate(_ expression: RulesExpression)
    func didEvaluate(_ expression: RulesExpression, _ result: RulesResult)
    /// Called after an `allow` statement.
    func didEvaluate(_ outcome: RulesOutcome)
    /// `debug(x)` was called. The string has the form of the emulator's log: `int_value: 5`.
    func didDebug(_ string: String, at line: Int)
}

extension RulesObserver {
    package func willEvaluate(allowAt line: Int, column: Int, method: RulesMethod) {}
    package func willEvaluate(_ expression: RulesExpression) {}
    package func didEvaluate(_ outcome: RulesOutcome) {}
    package func didDebug(_ string: String, at line: Int) {}
}
