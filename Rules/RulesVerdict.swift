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
    public var line: Int
    public var column: Int
    public var result: Result
    /// As Google's emulator writes it: `false for 'get' @ L12`.
    public var text: String
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
