/// The bounds of Security Rules. Source: "Security rules limits" of the Firestore documentation, or measurements of the
/// service where it differs. A bound marked "ours" guards memory or time.
package enum RulesLimits {
    // MARK: Sources

    /// A source of this size or more is rejected.
    package static let sourceSizeBytesMax = 262_144
    /// Issues that one compilation reports (ours).
    package static let issuesMax = 100
    /// Levels of an expression: parentheses, operators, literals and calls add one each.
    static let expressionLevelMax = 99
    /// Depth of an expression's tree, including members and methods (ours: they add no level).
    static let expressionDepthMax = 400
    /// Levels of nested match blocks. The documentation states 10.
    static let matchDepthMax = 11
    /// Segments of nested match paths.
    static let pathSegmentsMax = 100
    /// Captures of nested match paths.
    static let capturesMax = 20
    static let parametersMax = 7
    /// `let` bindings of one function. The documentation states 10.
    static let variablesMax = 11
    /// Functions on one chain of calls. The documentation states 20.
    static let callDepthMax = 21

    // MARK: Evaluation

    /// Expressions evaluated for one request.
    static let evaluationsMax = 1000
    /// Distinct documents that one operation may read.
    package static let accessesPerOperation = 10
    /// Distinct documents that a batch, a transaction or a read of several documents may read.
    package static let accessesPerBatch = 20
    /// Bytes of a string or byte string that rules build (ours).
    package static let stringSizeBytesMax = 16 << 20
    /// Elements of a list, a set or a map that rules build (ours).
    static let elementsMax = 1 << 20
    /// Values that one request compares, hashes or copies inside of lists and maps, and bytes that it replaces, splits
    /// or digests (ours). Without it, a list that holds one list twice, nested repeatedly, would take time exponential
    /// in the size of the rules.
    static let elementWorkMax = 4 << 20
    /// Memory of a literal regular expression in bytes (ours).
    static let patternMemoryBytesMax = 4 << 20
    /// Memory in bytes of a regular expression that is built during evaluation, possibly from a client's data (ours).
    static let dynamicPatternMemoryBytesMax = 256 << 10
    /// Bytes of such a regular expression (ours).
    static let dynamicPatternBytesMax = 4096
    /// Branches of a query (ours; a query has at most 30 disjunctions).
    package static let branchesMax = 1000

    // MARK: Reports

    /// Evaluations of one expression whose values coverage records; of later ones it only records true and false
    /// (ours). Recording a value costs far more than computing it.
    package static let coverageDetailedMax = 200
    /// Distinct values that coverage counts for one expression (ours).
    static let coverageValuesMax = 100
    /// Bytes of one value in a report (ours).
    static let reportedValueBytesMax = 1024
    /// Lines of an explanation (ours).
    static let explanationLinesMax = 10_000
}
