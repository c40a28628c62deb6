import HearthModel

/// What became of one `allow` statement.
package struct RulesOutcome: Sendable, Equatable {
    package enum Result: Sendable, Equatable {
        case allowed
        case denied
        /// The condition has no value.
        case failed
    }

    /// Of the `allow` statement, from 1.
    package let line: Int
    package let column: Int
    package let result: Result
    let method: RulesMethod
    /// Why the condition has no value.
    let failure: RuleFailure?
    /// Where the condition begins.
    let conditionLine: Int
    let conditionColumn: Int

    /// As Google's emulator writes it: `false for 'get' @ L12`. Made on demand: most decisions are never explained.
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

/// The judgement of one operation.
package struct RulesVerdict: Sendable {
    package let isAllowed: Bool
    /// Of the `allow` statements that were evaluated, in order.
    package let outcomes: [RulesOutcome]
    /// A document could not be read: the request fails with this status, and isn't denied.
    package let failure: Status?

    /// The reason of a denial as Google's emulator writes it.
    package var message: String {
        let refusals = outcomes.filter { $0.result != .allowed }
        if refusals.isEmpty { return "No matching allow statements" }
        return "\n" + refusals.map(\.string).joined(separator: ", ")
    }
}
