import HearthModel

/// The result of one `allow` statement.
package struct RulesOutcome: Sendable, Equatable {
    package enum Result: Sendable, Equatable {
        case allowed
        case denied
        /// The condition has no value.
        case failed
    }

    /// The line of the `allow` statement, from 1.
    package let line: Int
    package let column: Int
    package let result: Result
    let method: RulesMethod
    /// The reason why the condition has no value.
    let failure: RuleFailure?
    /// The position of the condition.
    package let conditionLine: Int
    package let conditionColumn: Int

    /// In the form of Google's emulator: `false for 'get' @ L12`. Built on demand, because most decisions are never
    /// explained.
    package var string: String {
        let reason =
            switch result {
            case .allowed: "true"
            case .denied: "false"
            case .failed: failure?.string ?? "evaluation error at L\(conditionLine):\(conditionColumn)"
            }
        return "\(reason) for '\(method.rawValue)' @ L\(line)"
    }

    package static func == (lhs: RulesOutcome, rhs: RulesOutcome) -> Bool {
        lhs.line == rhs.line && lhs.column == rhs.column && lhs.result == rhs.result && lhs.string == rhs.string
    }
}

/// The decision on one operation.
package struct RulesVerdict: Sendable {
    package let isAllowed: Bool
    /// The `allow` statements that were evaluated, in order.
    package let outcomes: [RulesOutcome]
    /// A document could not be read: the request fails with this status, and is not denied.
    package let failure: Status?

    /// The reason of a denial in the form of Google's emulator.
    package var message: String {
        let refusals = outcomes.filter { $0.result != .allowed }
        if refusals.isEmpty { return "No matching allow statements" }
        return "\n" + refusals.map(\.string).joined(separator: ", ")
    }
}
