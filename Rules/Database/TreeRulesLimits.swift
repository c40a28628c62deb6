/// The bounds of the Realtime Database's rules. One marked "ours" guards memory or time and isn't part of the service's
/// contract.
package enum TreeRulesLimits {
    // MARK: Sources

    /// A document of more bytes is refused. Source: "Limits of Realtime Database".
    package static let documentSizeBytesMax = 262_144
    /// Objects inside of one another (ours; data is at most 32 levels deep).
    package static let documentDepthMax = 100
    /// Parentheses, arguments and branches inside of one another (ours).
    package static let expressionNestingMax = 100
    /// Depth of an expression's tree; operands of one chain of `&&` or `||` are on one level (ours).
    package static let expressionDepthMax = 400
    /// Different regular expressions in one document (ours).
    package static let patternsMax = 1000
    /// Groups of a regular expression inside of one another (ours).
    package static let patternNestingMax = 50
    /// Memory of one regular expression in bytes (ours).
    package static let patternMemoryBytesMax = 256 << 10

    // MARK: Judging

    /// Steps of one decision: expressions evaluated, nodes looked at, and what is counted as several of them (ours). A write of
    /// half a million values may be validated by some forty steps each.
    package static let stepsMax = 20_000_000
    /// Steps to find out whether a write may be allowed before its data is there: it runs on an event loop.
    package static let foresightStepsMax = 20_000
    /// Steps that a look at the data costs (ours).
    package static let readSteps = 10
    /// Bytes of text that are one step to compare, search or copy (ours).
    package static let textBytesPerStep = 16
    /// Bytes of a text that rules put together (ours; a stored one has at most 10 MB).
    package static let stringSizeBytesMax = 16 << 20
}
