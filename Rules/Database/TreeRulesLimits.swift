/// The bounds of the Realtime Database's rules. A bound marked "ours" guards memory or time and is not part of the
/// service's contract.
package enum TreeRulesLimits {
    // MARK: Sources

    /// A larger document is rejected. Source: "Limits of Realtime Database".
    package static let documentSizeBytesMax = 262_144
    /// Levels of nested objects (ours; data is at most 32 levels deep).
    package static let documentDepthMax = 100
    /// Levels of nested parentheses, arguments and branches (ours).
    static let expressionNestingMax = 100
    /// Depth of an expression's tree; operands of one chain of `&&` or `||` are on one level (ours).
    static let expressionDepthMax = 400
    /// Different regular expressions in one document (ours).
    package static let patternsMax = 1000
    /// Levels of nested groups of a regular expression (ours).
    static let patternNestingMax = 50
    /// Memory of one regular expression in bytes (ours).
    static let patternMemoryBytesMax = 256 << 10

    // MARK: Decisions

    /// Steps of one decision: evaluated expressions, visited nodes, and operations that count as several steps (ours).
    /// A write of half a million values may be validated with some forty steps each.
    package static let stepsMax = 20_000_000
    /// Steps of the check whether a write may be allowed, before its data is received: it runs on an event loop.
    static let foresightStepsMax = 20_000
    /// The cost of one read of the data, in steps (ours).
    static let readSteps = 10
    /// Bytes of a string per step of comparison, search or copying (ours).
    package static let stringBytesPerStep = 16
    /// Bytes of a string that rules build (ours; a stored one has at most 10 MB).
    package static let stringSizeBytesMax = 16 << 20
}
