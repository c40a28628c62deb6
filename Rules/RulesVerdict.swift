import HearthModel

/// What became of one `allow` statement.
public struct RulesOutcome: Sendable, Equatable {
    public enum Result: Sendable, Equatable {
        case allowed
        case denied
        /// The condition has no value.
        case failed
    }

    /// Of the `allow` statement, from 1.
    public let line: Int
    public let column: Int
    public let result: Result
    let method: RulesMethod
    /// Why the condition has no value.
    let failure: RuleFailure?
    /// Where the condition begins.
    let conditionLine: Int
    let conditionColumn: Int

    /// As Google's emulator writes it: `false for 'get' @ L12`. Made on demand: most decisions are never explained.
    public var text: String {
        let reason =
            switch result {
            case .allowed: "true"
            case .denied: "false"
            case .failed: failure?.text ?? "evaluation error at L\(conditionLine):\(conditionColumn)"
            }
        return "\(reason) for '\(method.rawValue)' @ L\(line)"
    }

    public static func == (lhs: RulesOutcome, rhs: RulesOutcome) -> Bool {
        lhs.line == rhs.line && lhs.column == rhs.column && lhs.result == rhs.result && lhs.text == rhs.text
    }
}

/// The judgement of one operation.
public struct RulesVerdict: Sendable {
    public let isAllowed: Bool
    /// Of the `allow` statements that were evaluated, in order.
    public let outcomes: [RulesOutcome]
    /// A document could not be read: the request fails with this status, and isn't denied.
    public let failure: Status?

    /// The reason of a denial as Google's emulator writes it.
    public var message: String {
        let refusals = outcomes.filter { $0.result != .allowed }
        if refusals.isEmpty { return "No matching allow statements" }
        return "\n" + refusals.map(\.text).joined(separator: ", ")
    }
}
