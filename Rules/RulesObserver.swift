import HearthModel

/// An expression of a ruleset and where it stands.
package struct RulesExpression: Sendable {
    /// The position in `Ruleset.expressions`.
    package let id: Int
    /// From 1, of the first character.
    package let line: Int
    package let column: Int
    /// In bytes of UTF-8 from the beginning of the source, the end behind the last.
    package let startOffset: Int
    package let endOffset: Int
    /// The expression whose operand this is; nil for conditions, variables' values and functions' results.
    package let parent: Int?
}

/// What an expression came to, described on demand.
package struct RulesResult {
    let value: RuleValue
    let evaluation: Evaluation

    /// Whether it is true or false.
    var isBool: Bool { if case .bool = value { true } else { false } }

    /// Whether the expression has no value.
    package var isError: Bool { value.isError }

    /// The value as rules would write it, or the error's text; long ones are cut.
    package var string: String { evaluation.description(of: value) }
}

/// Told of each expression as it is evaluated: for coverage and explanations.
package protocol RulesObserver: AnyObject {
    /// The condition of an `allow` statement is about to be evaluated.
    func willEvaluate(allowAt line: Int, column: Int, method: RulesMethod)
    /// An expression is about to be evaluated; its operands follow.
    func willEvaluate(_ expression: RulesExpression)
    func didEvaluate(_ expression: RulesExpression, _ result: RulesResult)
    /// The `allow` statement has been judged.
    func didEvaluate(_ outcome: RulesOutcome)
    /// `debug(x)` was called. The text is as Google's emulator logs it: `int_value: 5`.
    func didDebug(_ string: String, at line: Int)
}

extension RulesObserver {
    package func willEvaluate(allowAt line: Int, column: Int, method: RulesMethod) {}
    package func willEvaluate(_ expression: RulesExpression) {}
    package func didEvaluate(_ outcome: RulesOutcome) {}
    package func didDebug(_ string: String, at line: Int) {}
}
