/// The reason why an expression has no value. The message is built only when it is read: `||` absorbs most errors.
final class RuleFailure: Sendable {
    enum Reason: Sendable {
        case undefinedProperty(String)
        case nullValue
        case functionNotFound(String)
        /// With the operands' types, such as `int + string`, and the supported types.
        case unsupported(received: String, expected: String)
        case argumentCount(received: Int, expected: String)
        case divideByZero
        case integerOverflow
        case indexOutOfBounds(Int64, size: Int)
        case illegalRange(from: Int64, to: Int64)
        case type(received: String, expected: String)
        case serviceCall(function: String, argument: String)
        case invalidPattern(String)
        /// Any other reason, with its message.
        case other(String)
        /// The expression is undecidable for all documents that a query may find.
        case unprovable
        /// The evaluation ended: no operator absorbs this one.
        case exhausted
    }

    let reason: Reason

    init(_ reason: Reason) {
        self.reason = reason
    }

    /// Google's message; nil where its emulator has none.
    var string: String? {
        switch reason {
        case .undefinedProperty(let name): "Property \(name) is undefined on object."
        case .nullValue: "Null value error."
        case .functionNotFound(let name): "Function not found error: Name: [\(name)]."
        case .unsupported(let received, let expected):
            "Unsupported operation error. Received: \(received). Expected: \(expected)."
        case .argumentCount(let count, let expected):
            "Incorrect number of arguments. Received: \(count). Expected: \(expected)."
        case .divideByZero: "Divide by zero error."
        case .integerOverflow:
            "Integer value is out of the [-9223372036854775808, 9223372036854775807] range."
        case .indexOutOfBounds(let index, let size): "Index out of bound error. Index: [\(index)] , size: [\(size)]."
        case .illegalRange(let from, let to):
            "Illegal range error. From index: [\(from)] , To index: [\(to)]."
        case .type(let received, let expected): "Type error. Received: [\(received)] Expected: [\(expected)]."
        case .serviceCall(let function, let argument):
            "Service call error. Function: [\(function)], Argument: [\(argument)]."
        case .invalidPattern(let pattern): "Invalid regular expression pattern. Pattern: \(pattern)."
        case .other(let string): string
        case .unprovable: nil
        case .exhausted:
            "Unable to evaluate the expression as the maximum of \(RulesLimits.evaluationsMax) expressions to evaluate "
                + "has been reached."
        }
    }
}

extension RuleValue {
    static func failure(_ reason: RuleFailure.Reason) -> RuleValue { .error(RuleFailure(reason)) }
}
